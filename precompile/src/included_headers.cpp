#include "warmgraph/precompile/included_headers.hpp"

#include <utility>

#include "warmgraph/precompile/headers.hpp"

namespace warmgraph {

IncludedHeaders included_headers(const std::string& source, const std::string& options)
{
    auto words = precompile::parse_options(options);
    const bool may_include = source.find_first_of("#%?") != std::string::npos || source.contains(".incbin");
    if (!may_include && words.files.empty() && words.why_unknown.empty()) return {};
    IncludedHeaders result{.why_unknown = std::exchange(words.why_unknown, {})};
    const precompile::Headers headers = precompile::headers_of(source, words);
    if (result.why_unknown.empty()) result.why_unknown = headers.why_unknown;
    if (headers.found.empty()) return result;
    // Covers names and contents but no paths, so that a moved installation still hits.
    Sha256 hash;
    for (const auto& [name, digest] : headers.found) hash.update_field(name).update_field(to_hex(digest));
    result.digest = to_hex(hash.update_field(to_hex(headers.search)).finish());
    return result;
}

} // namespace warmgraph
