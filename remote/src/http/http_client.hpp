// One request and its answer over HTTP, through libcurl. It knows nothing of objects, indexes and stamps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "address.hpp"
#include "curl_library.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::remote::http {

/// Answers and payloads up to this size belong to the shorter timeout.
inline constexpr std::uint64_t k_small_bytes = 64 * 1024;

enum class Method : std::uint8_t { get, head, put, remove, make_folder };
[[nodiscard]] std::string_view to_string(Method method) noexcept; ///< "GET", "HEAD", "PUT", "DELETE", "MKCOL"

/// The parts of an answer's headers that a backend uses.
struct ResponseHead {
    long status = 0;
    std::optional<std::uint64_t> length{}; ///< Content-Length
    std::string range{};                   ///< Content-Range
    std::string etag{};                    ///< with its quotes, as If-Match wants it
    std::string location{};                ///< of a redirect
    std::string date{};                    ///< Date
};

/// The part of an answer's body that is taken.
struct BodyPlan {
    std::uint64_t skip = 0; ///< bytes before those that are kept
    std::uint64_t keep = 0; ///< the most bytes that are kept
    std::uint64_t most = 0; ///< a body of more bytes is not read, or not to its end: Response::is_cut
};

struct Request {
    Method method = Method::get;
    std::string name{};                 ///< for the URL
    std::string url{};                  ///< instead of the name's
    std::vector<std::string> headers{}; ///< "If-None-Match: *"
    std::string range{};                ///< "0-99"
    ByteView body{};                    ///< of put
    milliseconds timeout{0};            ///< for all of it; more than 0
    /// For all of it, until an answer of more than 64 KiB, or of a length that is not stated, has begun. 0: none
    milliseconds small_timeout{0};
    /// Called once the headers of an answer below 400 are there. Empty: nothing of the body is kept.
    std::function<BodyPlan(const ResponseHead&)> plan{};
};

struct Response {
    ResponseHead head;
    Bytes body;                 ///< of an answer of 400 and more its beginning, for messages
    std::uint64_t received = 0; ///< bytes of the whole body, with those that the plan leaves out
    bool is_cut = false;        ///< the body is longer than the plan allows; `body` is not to be used
};

class Transfer;

/// Thread-safe. Keeps its connections open for the next requests. REQUIRES: one process uses a client; after a fork, the
/// child makes its own, and does not destroy its parent's, because that would end the parent's connections.
class HttpClient {
public:
    /// Requests end with io_failed within 50 ms once `stop` is true.
    HttpClient(const CurlLibrary& library, Address address, milliseconds connect_timeout,
               std::shared_ptr<const std::atomic<bool>> stop);
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;
    ~HttpClient();

    [[nodiscard]] const Address& address() const noexcept { return m_address; }
    /// Sends one request. An answer with any status is a Response. io_failed: no connection, a timeout, a connection that
    /// broke. corrupt: no HTTP, or a body of another length than announced. The message has no secret.
    [[nodiscard]] Result<Response> exchange(const Request& request);

private:
    /// A request's handle, and the one that keeps its connection.
    struct Connection {
        CURL* easy = nullptr;
        CURLM* multi = nullptr;
    };
    class Borrowed;
    [[nodiscard]] CURLcode perform(const Connection& connection, const Transfer& transfer,
                                   milliseconds small_timeout) const;
    void clean_up(const Connection& connection) const;

    const CurlLibrary& m_library;
    const Address m_address;
    const milliseconds m_connect_timeout;
    const std::shared_ptr<const std::atomic<bool>> m_stop;
    const std::string m_ca_file; ///< $SSL_CERT_FILE; empty: libcurl's own
    std::mutex m_mutex;          // guards m_idle
    std::vector<Connection> m_idle;
};

/// The failure that an answer with this status means, e.g. permission_denied for 403. For statuses below 300, `corrupt`:
/// the answer is none to this request.
[[nodiscard]] std::unexpected<Error> failure_of(const Response& response, const Address& address);

} // namespace warmgraph::remote::http
