// The settings of a remote tier, from its URL: where it is, with which name, and within which times and sizes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/error.hpp"

namespace warmgraph::remote {

using std::chrono::milliseconds;

enum class Scheme : std::uint8_t { file, http, https, s3, redis, rediss, redis_socket };
[[nodiscard]] std::string_view to_string(Scheme scheme) noexcept; ///< as in URLs; "unix" for redis_socket

/// How HTTP servers name objects: by their names, or as Bazel's protocol does, "ac/" and 64 hex digits.
enum class Layout : std::uint8_t { names, bazel };

/// Secrets of a remote. They are in no message, and are overwritten when they are no longer needed.
struct Credentials {
    std::string user{};     ///< user name; the access key id of S3
    std::string password{}; ///< password; the secret access key of S3
    std::string token{};    ///< the session token of S3; the bearer token of HTTP

    Credentials() = default;
    Credentials(const Credentials&) = default;
    Credentials(Credentials&&) = default;
    Credentials& operator=(const Credentials&) = default;
    Credentials& operator=(Credentials&&) = default;
    ~Credentials() { forget(); }
    void forget() noexcept;
};

struct Settings {
    Scheme scheme = Scheme::file;
    /// The URL without credentials and attributes, for messages: "redis://cache:6379/0", "s3://models/warmgraph".
    std::string label;
    std::string host;
    std::uint16_t port = 0; ///< 0: the scheme's own
    std::string path;      ///< of HTTP with a leading '/', of S3 the prefix, of file and redis_socket the absolute path
    std::string bucket;    ///< of S3
    unsigned database = 0; ///< of Redis
    Credentials credentials;
    // --- Attributes
    Layout layout = Layout::names;     ///< of http and https
    bool read_only = false;            ///< nothing is uploaded
    bool allow_unsigned = false;       ///< objects without an accepted signature are used, too
    milliseconds connect_timeout{100}; ///< 1 s for https and s3, which need several round trips
    milliseconds header_timeout{1000}; ///< for an answer without a payload, or with at most 64 KiB
    milliseconds payload_timeout{30'000};
    std::chrono::seconds ttl{0}; ///< objects are removed that long after they were put, where the store can; 0: never
    std::string name_space{};    ///< put before all names: "v7/"; caches with other namespaces do not see each other
    std::uint64_t max_bytes = 0; ///< objects above this size are neither uploaded nor read; 0: the kind's own limit
    std::string region{"us-east-1"}; ///< of S3; us-east-1 where nothing says another
    std::string endpoint{};          ///< of S3: "http://127.0.0.1:9000"; empty: Amazon's
    bool path_style = false;         ///< of S3: the bucket is in the path, not in the host; always with an endpoint
    // --- Not of the URL
    /// Set when the process ends: requests that are under way end soon with io_failed. Backends look at it at least every
    /// 50 ms while they wait.
    std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);
};

using EnvironmentReader = std::function<std::optional<std::string>(const char*)>;

/// Parses one URL: `scheme://[user[:password]@]host[:port]/path[?attribute[=value]&...]`, with %XX in user, password
/// and values. docs/remote.md lists the attributes. Secrets come from the URL, from attributes (`user`, `password`,
/// `token`), or from `credentials-file`, a file of lines `user=...`, `password=...`, `token=...` that its owner alone
/// can read. If there are none, $WARMGRAPH_REMOTE_USER, $WARMGRAPH_REMOTE_PASSWORD and $WARMGRAPH_REMOTE_TOKEN are used;
/// for S3 $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN. S3 also reads $AWS_REGION or
/// $AWS_DEFAULT_REGION, and $AWS_ENDPOINT_URL_S3 or $AWS_ENDPOINT_URL. invalid_argument names the wrong part and never
/// contains a secret; permission_denied: others may read the credentials file.
[[nodiscard]] Result<Settings> parse(std::string_view url, const EnvironmentReader& environment);
/// Parses $WARMGRAPH_REMOTE: URLs separated by commas and spaces. A comma inside a URL is written %2C.
[[nodiscard]] Result<std::vector<Settings>> parse_list(std::string_view urls, const EnvironmentReader& environment);

} // namespace warmgraph::remote
