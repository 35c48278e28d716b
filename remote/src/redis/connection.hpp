// A stream of bytes to a Redis server, over TCP, a Unix socket or TLS, on which every wait has a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "redis/tls.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/remote/settings.hpp"

namespace warmgraph::remote::redis {

/// An open socket that does not block. It raises no SIGPIPE.
class Socket {
public:
    /// `stop`: Settings::stop.
    Socket(int descriptor, std::shared_ptr<const std::atomic<bool>> stop) noexcept
        : m_descriptor(descriptor), m_stop(std::move(stop))
    {
    }
    Socket(Socket&& other) noexcept;
    Socket& operator=(Socket&&) = delete;
    ~Socket();

    /// Sends all bytes. io_failed: the connection is closed, or the deadline has passed.
    [[nodiscard]] Result<void> send(ByteView bytes, Deadline by);
    /// Receives at least one byte; 0 bytes: the server closed the connection.
    [[nodiscard]] Result<std::size_t> receive(std::span<std::byte> room, Deadline by);
    /// True after a call has found that the server closed the connection.
    [[nodiscard]] bool is_closed() const noexcept { return m_is_closed; }
    /// True while there is nothing to receive, not even the end.
    [[nodiscard]] bool is_quiet() const noexcept;
    /// Waits until a connection that was begun is there.
    [[nodiscard]] Result<void> finish_connecting(Deadline by);

private:
    [[nodiscard]] Result<void> wait_for(short events, Deadline by) const;

    int m_descriptor;
    std::shared_ptr<const std::atomic<bool>> m_stop;
    bool m_is_closed = false;
};

/// A connection that is ready for commands.
class Connection {
public:
    /// Connects to the host and port, or the path, of the settings by `connect_by`; with `tls`, the handshake ends by
    /// `by`. Addresses of a name share the time.
    [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Settings& settings, const TlsContext* tls,
                                                                  Deadline connect_by, Deadline by);

    [[nodiscard]] Result<void> send(ByteView bytes, Deadline by);
    [[nodiscard]] Result<std::size_t> receive(std::span<std::byte> room, Deadline by);
    [[nodiscard]] bool is_closed() const noexcept { return m_socket.is_closed(); }
    [[nodiscard]] bool is_quiet() const noexcept { return m_socket.is_quiet(); }

    explicit Connection(Socket socket) noexcept : m_socket(std::move(socket)) {}

private:
    Socket m_socket;
    std::unique_ptr<TlsSession> m_tls; ///< null: no TLS
};

} // namespace warmgraph::remote::redis
