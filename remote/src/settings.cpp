#include "warmgraph/remote/settings.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::remote {
namespace {

using std::chrono::seconds;

constexpr const char* k_schemes = "file, http, https, s3, redis, rediss or unix";

std::optional<Scheme> scheme_of(std::string_view word)
{
    for (const Scheme scheme :
         {Scheme::file, Scheme::http, Scheme::https, Scheme::s3, Scheme::redis, Scheme::rediss, Scheme::redis_socket})
        if (to_string(scheme) == word) return scheme;
    return std::nullopt;
}

bool is_redis(Scheme scheme) noexcept
{
    return scheme == Scheme::redis || scheme == Scheme::rediss || scheme == Scheme::redis_socket;
}

/// Decodes %XX. nullopt: a '%' without two hex digits, or a zero byte.
std::optional<std::string> decoded(std::string_view text)
{
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            result += text[i];
            continue;
        }
        unsigned value = 0;
        const char* const digits = text.data() + i + 1;
        if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2 || value == 0)
            return std::nullopt;
        result += static_cast<char>(value);
        i += 2;
    }
    return result;
}

/// Takes the text before the separator off the front; all of it if there is none.
std::string_view take_until(std::string_view& text, char separator)
{
    const std::size_t end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return part;
}

template <class Number>
Result<void> set_number(Number& to, std::string_view what, std::string_view text, std::uint64_t most)
{
    const auto value = store::parse_count(what, text);
    if (!value) return std::unexpected(value.error());
    if (*value > most) return fail(ErrorCode::invalid_argument, "{} is {}, expected at most {}", what, *value, most);
    to = Number(*value);
    return {};
}

Result<void> set_flag(bool& to, std::string_view what, std::string_view text)
{
    if (text != "" && text != "1" && text != "0" && text != "true" && text != "false")
        return fail(ErrorCode::invalid_argument, "{} is '{}', expected no value, true or false", what,
                    printable(text, 64));
    to = text != "0" && text != "false";
    return {};
}

Result<void> set_layout(Layout& to, std::string_view text)
{
    if (text != "names" && text != "bazel")
        return fail(ErrorCode::invalid_argument, "layout is '{}', expected names or bazel", printable(text, 64));
    to = text == "bazel" ? Layout::bazel : Layout::names;
    return {};
}

Result<void> set_name_space(std::string& to, std::string_view text)
{
    constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (text.empty() || text.size() > 100 || text.find_first_not_of(k_letters) != std::string_view::npos ||
        text.starts_with('.'))
        return fail(ErrorCode::invalid_argument, "namespace is '{}', expected 1 to 100 of [A-Za-z0-9._-]",
                    printable(text, 64));
    to = fmt::format("{}/", text);
    return {};
}

/// Reads lines `user=...`, `password=...`, `token=...`.
Result<void> read_credentials(Credentials& to, const std::string& path)
{
    constexpr off_t k_most = 16 << 10;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail(ErrorCode::not_found, "cannot read credentials file {}: {}", path, std::strerror(errno));
    struct stat status{};
    const bool is_known = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= k_most;
    std::string text(is_known ? static_cast<std::size_t>(status.st_size) : 0, '\0');
    const bool is_read = is_known && ::pread(file, text.data(), text.size(), 0) == status.st_size;
    ::close(file);
    Result<void> done;
    if (!is_read)
        done = fail(ErrorCode::invalid_argument, "credentials file {} is no regular file of at most {} bytes", path,
                    k_most);
    else if ((status.st_mode & 077U) != 0)
        done = fail(ErrorCode::permission_denied,
                    "credentials file {} can be read or written by others (mode {:o}): chmod go= {}", path,
                    status.st_mode & 0777U, path);
    for (std::string_view rest = text; done && !rest.empty();) {
        std::string_view value = take_until(rest, '\n');
        if (value.empty() || value.starts_with('#')) continue;
        const std::string_view name = take_until(value, '=');
        if (name == "user")
            to.user = value;
        else if (name == "password")
            to.password = value;
        else if (name == "token")
            to.token = value;
        else
            done = fail(ErrorCode::invalid_argument,
                        "credentials file {} has a line that begins with neither user=, password= nor token=", path);
    }
    wipe(text);
    return done;
}

using Set = Result<void> (*)(Settings&, const std::string&);
struct Attribute {
    std::string_view name;
    Set set;
};
constexpr std::uint64_t k_most_ms = 3'600'000;
constexpr std::uint64_t k_most_s = 10ULL * 365 * 86'400;
const std::array<Attribute, 17> k_attributes{{
    {"read-only", [](Settings& s, const std::string& v) { return set_flag(s.read_only, "read-only", v); }},
    {"allow-unsigned",
     [](Settings& s, const std::string& v) { return set_flag(s.allow_unsigned, "allow-unsigned", v); }},
    {"connect-timeout",
     [](Settings& s, const std::string& v) { return set_number(s.connect_timeout, "connect-timeout", v, k_most_ms); }},
    {"request-timeout",
     [](Settings& s, const std::string& v) { return set_number(s.header_timeout, "request-timeout", v, k_most_ms); }},
    {"payload-timeout",
     [](Settings& s, const std::string& v) { return set_number(s.payload_timeout, "payload-timeout", v, k_most_ms); }},
    {"ttl", [](Settings& s, const std::string& v) { return set_number(s.ttl, "ttl", v, k_most_s); }},
    {"namespace", [](Settings& s, const std::string& v) { return set_name_space(s.name_space, v); }},
    {"layout", [](Settings& s, const std::string& v) { return set_layout(s.layout, v); }},
    {"max-bytes",
     [](Settings& s, const std::string& v) -> Result<void> {
         const auto bytes = store::parse_bytes("max-bytes", v);
         if (!bytes) return std::unexpected(bytes.error());
         s.max_bytes = *bytes;
         return {};
     }},
    {"region", [](Settings& s, const std::string& v) -> Result<void> { return s.region = v, Result<void>{}; }},
    {"endpoint", [](Settings& s, const std::string& v) -> Result<void> { return s.endpoint = v, Result<void>{}; }},
    {"path-style", [](Settings& s, const std::string& v) { return set_flag(s.path_style, "path-style", v); }},
    {"database", [](Settings& s, const std::string& v) { return set_number(s.database, "database", v, 1U << 20); }},
    {"user", [](Settings& s, const std::string& v) -> Result<void> { return s.credentials.user = v, Result<void>{}; }},
    {"password",
     [](Settings& s, const std::string& v) -> Result<void> { return s.credentials.password = v, Result<void>{}; }},
    {"token",
     [](Settings& s, const std::string& v) -> Result<void> { return s.credentials.token = v, Result<void>{}; }},
    {"credentials-file", [](Settings& s, const std::string& v) { return read_credentials(s.credentials, v); }},
}};

Result<void> set_attribute(Settings& settings, std::string_view text)
{
    std::string_view value = text;
    const std::string_view name = take_until(value, '=');
    const auto known = std::ranges::find(k_attributes, name, &Attribute::name);
    if (known == k_attributes.end()) {
        std::string names;
        for (const Attribute& one : k_attributes) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
        return fail(ErrorCode::invalid_argument, "unknown attribute '{}', expected one of {}", printable(name, 64),
                    names);
    }
    auto plain = decoded(value);
    if (!plain)
        return fail(ErrorCode::invalid_argument, "attribute '{}' has a '%' without two hex digits: write %25", name);
    auto done = known->set(settings, *plain);
    wipe(*plain);
    return done;
}

/// Reads "[user[:password]@]host[:port]".
Result<void> set_place(Settings& settings, std::string_view text)
{
    const std::size_t at = text.rfind('@');
    if (at != std::string_view::npos) {
        std::string_view password = text.substr(0, at);
        const std::string_view name = take_until(password, ':');
        auto user = decoded(name), secret = decoded(password);
        if (!user || !secret)
            return fail(ErrorCode::invalid_argument, "the user or the password has a '%' without two hex digits");
        settings.credentials.user = std::move(*user);
        settings.credentials.password = std::move(*secret);
        text.remove_prefix(at + 1);
    }
    std::string_view port;
    if (text.starts_with('[')) { // an address of IPv6
        text.remove_prefix(1);
        settings.host = take_until(text, ']');
        if (text.starts_with(':')) port = text.substr(1);
    } else {
        settings.host = take_until(text, ':');
        port = text;
    }
    constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:%";
    if (settings.host.empty() || settings.host.find_first_not_of(k_letters) != std::string::npos)
        return fail(ErrorCode::invalid_argument, "the host is '{}', expected a name or an address",
                    printable(settings.host, 100));
    if (port.empty()) return {};
    return set_number(settings.port, "the port", port, std::numeric_limits<std::uint16_t>::max());
}

Result<void> set_path(Settings& settings, std::string_view path)
{
    if (path.contains("..") || path.find_first_of("\"\\<>^`{|} \t\r\n") != std::string_view::npos)
        return fail(ErrorCode::invalid_argument, "the path is '{}', expected one without '..', spaces and quotes",
                    printable(path, 100));
    if (settings.scheme == Scheme::redis || settings.scheme == Scheme::rediss) {
        if (path.empty() || path == "/") return {};
        return set_number(settings.database, "the database", path.substr(1), 1U << 20);
    }
    const bool is_local = settings.scheme == Scheme::file || settings.scheme == Scheme::redis_socket;
    if (is_local && (path.size() < 2 || !path.starts_with('/')))
        return fail(ErrorCode::invalid_argument, "the path is '{}', expected an absolute one: {}:///path",
                    printable(path, 100), to_string(settings.scheme));
    settings.path = path;
    if (!is_local)
        while (settings.path.ends_with('/')) settings.path.pop_back();
    return {};
}

void use_environment(Settings& settings, const EnvironmentReader& environment)
{
    const auto variable = [&](const char* name) { return environment(name).value_or(""); };
    const auto first = [&](std::initializer_list<const char*> names) {
        for (const char* const name : names)
            if (auto value = variable(name); !value.empty()) return value;
        return std::string();
    };
    Credentials& own = settings.credentials;
    const bool is_given = !own.user.empty() || !own.password.empty() || !own.token.empty();
    if (settings.scheme == Scheme::s3) {
        if (settings.region.empty()) settings.region = first({"AWS_REGION", "AWS_DEFAULT_REGION"});
        if (settings.region.empty()) settings.region = "us-east-1";
        if (settings.endpoint.empty()) settings.endpoint = first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
        settings.path_style = settings.path_style || !settings.endpoint.empty();
        if (!is_given) {
            own.user = variable("AWS_ACCESS_KEY_ID");
            own.password = variable("AWS_SECRET_ACCESS_KEY");
            own.token = variable("AWS_SESSION_TOKEN");
        }
    } else if (!is_given && settings.scheme != Scheme::file) {
        own.user = variable("WARMGRAPH_REMOTE_USER");
        own.password = variable("WARMGRAPH_REMOTE_PASSWORD");
        own.token = variable("WARMGRAPH_REMOTE_TOKEN");
    }
}

std::string label_of(const Settings& settings)
{
    if (settings.scheme == Scheme::file || settings.scheme == Scheme::redis_socket)
        return fmt::format("{}://{}", to_string(settings.scheme), settings.path);
    const std::string host = settings.host.contains(':') ? fmt::format("[{}]", settings.host) : settings.host;
    return fmt::format("{}://{}{}{}", to_string(settings.scheme),
                       settings.scheme == Scheme::s3 ? settings.bucket : host,
                       settings.port == 0 ? "" : fmt::format(":{}", settings.port),
                       is_redis(settings.scheme) ? fmt::format("/{}", settings.database) : settings.path);
}

Result<Settings> parsed(std::string_view url, const EnvironmentReader& environment)
{
    Settings settings;
    const std::size_t end = url.find("://");
    const auto scheme = scheme_of(url.substr(0, end));
    if (end == std::string_view::npos || !scheme) // a text without a scheme may be a secret
        return fail(ErrorCode::invalid_argument, "it begins with {}, expected {} and '://'",
                    end > 16 ? "no scheme" : fmt::format("'{}'", printable(url.substr(0, end), 16)), k_schemes);
    settings.scheme = *scheme;
    std::string_view attributes = url.substr(end + 3);
    std::string_view place = take_until(attributes, '?');
    const bool is_local = *scheme == Scheme::file || *scheme == Scheme::redis_socket;
    const std::size_t slash = std::min(place.find('/'), place.size());
    if (is_local && slash != 0)
        return fail(ErrorCode::invalid_argument, "it has no third '/', expected {}:///path", to_string(*scheme));
    if (place.find('@', slash) != std::string_view::npos)
        return fail(ErrorCode::invalid_argument, "there is a '/' before its '@': write %2F in a password");
    if (!is_local)
        if (auto ok = set_place(settings, place.substr(0, slash)); !ok) return std::unexpected(ok.error());
    if (auto ok = set_path(settings, place.substr(slash)); !ok) return std::unexpected(ok.error());
    if (*scheme == Scheme::s3) settings.bucket = std::exchange(settings.host, {});
    settings.region.clear();
    if (*scheme == Scheme::s3 || *scheme == Scheme::https || *scheme == Scheme::rediss)
        settings.connect_timeout = milliseconds(1000);
    while (!attributes.empty())
        if (auto ok = set_attribute(settings, take_until(attributes, '&')); !ok) return std::unexpected(ok.error());
    use_environment(settings, environment);
    settings.label = label_of(settings);
    return settings;
}

/// The URL up to its secrets, for a message about a wrong one.
std::string shown(std::string_view url)
{
    const std::string_view place = url.substr(0, std::min(url.find('?'), url.size()));
    const std::size_t at = place.rfind('@'), begin = place.find("://");
    if (at == std::string_view::npos) return printable(place, 200);
    const std::size_t kept = begin == std::string_view::npos || begin > at ? 0 : begin + 3;
    return printable(fmt::format("{}***{}", place.substr(0, kept), place.substr(at)), 200);
}

} // namespace

std::string_view to_string(Scheme scheme) noexcept
{
    switch (scheme) {
    case Scheme::file: return "file";
    case Scheme::http: return "http";
    case Scheme::https: return "https";
    case Scheme::s3: return "s3";
    case Scheme::redis: return "redis";
    case Scheme::rediss: return "rediss";
    case Scheme::redis_socket: break;
    }
    return "unix";
}

void Credentials::forget() noexcept
{
    wipe(user);
    wipe(password);
    wipe(token);
}

Result<Settings> parse(std::string_view url, const EnvironmentReader& environment)
{
    auto settings = parsed(url, environment);
    if (!settings) return within(fmt::format("remote '{}'", shown(url)), settings.error());
    return settings;
}

Result<std::vector<Settings>> parse_list(std::string_view urls, const EnvironmentReader& environment)
{
    std::vector<Settings> all;
    while (!urls.empty()) {
        const std::size_t end = std::min(urls.find_first_of(", \t\r\n"), urls.size());
        const std::string_view url = urls.substr(0, end);
        urls.remove_prefix(std::min(end + 1, urls.size()));
        if (url.empty()) continue;
        auto settings = parse(url, environment);
        if (!settings) return std::unexpected(settings.error());
        all.push_back(std::move(*settings));
    }
    return all;
}

} // namespace warmgraph::remote
