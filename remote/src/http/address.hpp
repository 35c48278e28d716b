// Where a remote's objects are, and how a request proves its right to them.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/remote/settings.hpp"

namespace warmgraph::remote::http {

struct Address {
    std::string base;         ///< up to the names, with the namespace: "https://cache:8080/prefix/v7/"
    std::size_t root_end = 0; ///< length of the part of `base` that is no folder of ours: "https://cache:8080/"
    bool is_s3 = false;
    /// Objects are named "ac/" and the SHA-256 of the namespace and their name, the only names that bazel-remote takes
    bool is_hashed = false;
    std::string name_space{}; ///< only with is_hashed; else it is in `base`
    std::string signing{};    ///< of S3 with a key: CURLOPT_AWS_SIGV4's value, "aws:amz:us-east-1:s3"
    Credentials credentials{};

    /// The URL of the object with this name.
    [[nodiscard]] std::string url_of(std::string_view name) const;
};

/// invalid_argument names a part of the settings that cannot be in a URL or in a header, and no secret.
[[nodiscard]] Result<Address> address_of(const Settings& settings);

/// Writes all bytes but [A-Za-z0-9._~/-] as %XX (RFC 3986, section 2.1).
[[nodiscard]] std::string percent_encoded(std::string_view text);
/// The same for a path from a URL: each %XX in it stays.
[[nodiscard]] std::string percent_encoded_path(std::string_view path);

} // namespace warmgraph::remote::http
