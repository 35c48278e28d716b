#include "address.hpp"

#include <algorithm>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph::remote::http {
namespace {

/// The path between single slashes, without one at its ends; "" for the root.
std::string trimmed(std::string_view path)
{
    while (path.starts_with('/')) path.remove_prefix(1);
    while (path.ends_with('/')) path.remove_suffix(1);
    return std::string(path);
}

bool has_control(std::string_view text)
{
    return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// Host names, addresses, and with `also` what else the part may have.
bool is_host(std::string_view text, std::string_view also)
{
    return !text.empty() && std::ranges::all_of(text, [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
               also.contains(c);
    });
}

std::string region_of(const Settings& settings) { return settings.region.empty() ? "us-east-1" : settings.region; }

/// Scheme, host and port: "http://cache:8080".
Result<std::string> server_of(const Settings& settings)
{
    if (settings.scheme != Scheme::s3) {
        const bool is_v6 = settings.host.contains(':') && !settings.host.starts_with('[');
        if (!is_host(settings.host, ":[]_"))
            return fail(ErrorCode::invalid_argument, "remote {}: the host is not a name or an address", settings.label);
        return fmt::format("{}://{}{}{}{}", to_string(settings.scheme), is_v6 ? "[" : "", settings.host,
                           is_v6 ? "]" : "", settings.port != 0 ? fmt::format(":{}", settings.port) : "");
    }
    if (!is_host(settings.bucket, "_"))
        return fail(ErrorCode::invalid_argument,
                    "remote {}: the bucket's name is empty, or has other characters than "
                    "letters, digits, '.', '-' and '_'",
                    settings.label);
    const std::string region = region_of(settings);
    if (!is_host(region, ""))
        return fail(ErrorCode::invalid_argument, "remote {}: the region is not a name such as us-east-1",
                    settings.label);
    if (!settings.endpoint.empty()) {
        const std::string endpoint = trimmed(settings.endpoint);
        const std::size_t host = endpoint.find("://") + 3;
        if (!(endpoint.starts_with("http://") || endpoint.starts_with("https://")) ||
            !is_host(std::string_view(endpoint).substr(host), ":[]_"))
            return fail(ErrorCode::invalid_argument,
                        "remote {}: the endpoint is not of the form http://host:port or https://host", settings.label);
        return endpoint;
    }
    // A certificate for *.s3.region.amazonaws.com does not hold for a bucket with dots.
    if (settings.path_style || settings.bucket.contains('.')) return fmt::format("https://s3.{}.amazonaws.com", region);
    return fmt::format("https://{}.s3.{}.amazonaws.com", settings.bucket, region);
}

} // namespace

std::string percent_encoded(std::string_view text)
{
    std::string encoded;
    for (const char c : text)
        if (is_host(std::string_view(&c, 1), "_~/"))
            encoded += c;
        else
            encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return encoded;
}

std::string percent_encoded_path(std::string_view path)
{
    constexpr std::string_view k_digits = "0123456789abcdefABCDEF";
    std::string encoded;
    while (!path.empty()) {
        const bool is_escape =
            path.starts_with('%') && path.size() > 2 && k_digits.contains(path[1]) && k_digits.contains(path[2]);
        const std::string_view piece = path.substr(0, is_escape ? 3 : 1);
        encoded += is_escape ? std::string(piece) : percent_encoded(piece);
        path.remove_prefix(piece.size());
    }
    return encoded;
}

std::string Address::url_of(std::string_view name) const
{
    if (is_hashed) return fmt::format("{}ac/{}", base, to_hex(sha256(as_bytes(fmt::format("{}{}", name_space, name)))));
    return base + percent_encoded(name);
}

Result<Address> address_of(const Settings& settings)
{
    auto server = server_of(settings);
    if (!server) return std::unexpected(std::move(server.error()));
    const Credentials& credentials = settings.credentials;
    for (const std::string* part : {&credentials.user, &credentials.password, &credentials.token})
        if (has_control(*part))
            return fail(ErrorCode::invalid_argument, "remote {}: the {} has a control character, e.g. a line end",
                        settings.label,
                        part == &credentials.user       ? "user"
                        : part == &credentials.password ? "password"
                                                        : "token");
    Address address;
    address.is_s3 = settings.scheme == Scheme::s3;
    address.credentials = credentials;
    address.base = *server + '/';
    address.root_end = address.base.size();
    const bool bucket_in_path = address.is_s3 && !server->contains("://" + settings.bucket + ".s3.");
    for (const std::string& part : {bucket_in_path ? settings.bucket : std::string(), trimmed(settings.path)})
        if (!part.empty()) address.base += percent_encoded_path(part) + '/';
    // The namespace may end in the middle of a name, e.g. "v7-".
    std::string_view name_space = settings.name_space;
    while (name_space.starts_with('/')) name_space.remove_prefix(1);
    address.is_hashed = settings.layout == Layout::bazel;
    if (address.is_hashed)
        address.name_space = name_space;
    else
        address.base += percent_encoded(name_space);
    if (address.is_s3 && !credentials.user.empty()) address.signing = fmt::format("aws:amz:{}:s3", region_of(settings));
    return address;
}

} // namespace warmgraph::remote::http
