// Sends commands to one Redis server over a few connections that it keeps.
#pragma once

#include <mutex>

#include <sys/types.h>

#include "redis/connection.hpp"
#include "redis/resp.hpp"

namespace warmgraph::remote::redis {

/// How long a call may take.
struct CallTimes {
    Deadline by;          ///< the whole call ends, with the connecting
    milliseconds silence; ///< from the end of the request to the first byte of the answer
};

/// Thread-safe: calls at the same time have connections of their own. After fork() the child opens its own.
class Client {
public:
    /// `tls`: null except for rediss.
    Client(const Settings& settings, std::unique_ptr<TlsContext> tls) : m_settings(settings), m_tls(std::move(tls)) {}

    /// Sends the commands and reads a reply for each. The first error reply is the call's Error (error_of()).
    /// A connection that the server closed meanwhile (a restart, its time limit) is replaced, and the commands are sent
    /// again. REQUIRES: to do them twice does no harm.
    [[nodiscard]] Result<std::vector<Reply>> call(const Request& request, const ReplyCaps& caps,
                                                  const CallTimes& times);

private:
    struct Idle {
        std::unique_ptr<Connection> connection;
        Deadline since; ///< when it was last used
    };
    [[nodiscard]] std::unique_ptr<Connection> take_idle();
    void keep(std::unique_ptr<Connection> connection);
    [[nodiscard]] Result<std::unique_ptr<Connection>> open(const CallTimes& times) const;

    Settings m_settings;
    std::unique_ptr<TlsContext> m_tls;
    std::mutex m_mutex;
    std::vector<Idle> m_idle; ///< guarded, as m_owner
    pid_t m_owner = 0;        ///< the process that opened m_idle
};

} // namespace warmgraph::remote::redis
