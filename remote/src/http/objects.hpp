// Objects by name on an HTTP server: their bytes, sizes and ETags. It knows the statuses and the ranges of RFC 9110, and
// nothing of what the names mean.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "http_client.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::remote::http {

/// The time that is left for a call with several requests.
class Deadline {
public:
    explicit Deadline(milliseconds within = milliseconds{0})
    {
        if (within.count() > 0) m_end = std::chrono::steady_clock::now() + within;
    }
    /// At most `most`. io_failed: no time is left.
    [[nodiscard]] Result<milliseconds> left(milliseconds most) const;

private:
    std::optional<std::chrono::steady_clock::time_point> m_end;
};

/// An object that is there.
struct StoredObject {
    store::StampedBytes object;
    std::string etag; ///< as the server wrote it; "" if it gave none
};

struct PutAnswer {
    bool is_refused = false; ///< the condition did not hold: the name is taken, or another object is there
    std::string etag{};      ///< of the object that was put; "" if the server gave none
};

/// Thread-safe. Each call is one request where the comment does not say more. Errors are those of failure_of() and of
/// HttpClient::exchange().
class Objects {
public:
    struct Limits {
        milliseconds small{0}; ///< for a request without a payload, or with at most 64 KiB
        milliseconds large{0};
    };
    Objects(HttpClient& client, Limits limits) noexcept : m_client(client), m_limits(limits) {}

    /// nullopt: there is no such object. A part of an object comes by a range; from a server without ranges, as a part of the
    /// whole object if that is at most 1 MiB longer than the part, else `unsupported`. extent.within is not looked at.
    [[nodiscard]] Result<std::optional<StoredObject>> get(std::string_view name, const store::ReadLimit& extent,
                                                          const Deadline& deadline) const;
    /// The object's stamp and ETag, without bytes.
    [[nodiscard]] Result<std::optional<StoredObject>> stat(std::string_view name, const Deadline& deadline) const;
    /// `condition`: a header such as "If-None-Match: *", or "". Makes the folders above the name where the server wants
    /// that, and puts again. A server that does not know conditions (501) is asked again without.
    [[nodiscard]] Result<PutAnswer> put(std::string_view name, ByteView bytes, const std::string& condition) const;
    /// Removing a missing object is a success.
    [[nodiscard]] Result<void> remove(std::string_view name) const;

private:
    [[nodiscard]] Result<Response> send(Request request, std::uint64_t bytes, const Deadline& deadline) const;
    [[nodiscard]] Result<std::optional<StoredObject>> judge(Response response, const store::ReadLimit& extent,
                                                            std::string_view name, const Deadline& deadline) const;
    [[nodiscard]] Result<void> make_folders(std::string_view name) const;

    HttpClient& m_client;
    Limits m_limits;
};

/// Stamp::version of an object with this ETag: 64 bits of its SHA-256, never 0; 0 without an ETag.
[[nodiscard]] std::uint64_t version_of(std::string_view etag);

} // namespace warmgraph::remote::http
