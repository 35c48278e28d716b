#include "included_headers.hpp"

#include "warmgraph/precompile/headers.hpp"

namespace warmgraph {

std::string included_headers(const std::string& source, const std::string& options)
{
    if (source.find('#') == std::string::npos && options.find("-include") == std::string::npos) return {};
    auto words = precompile::parse_options(options);
    words.why_unknown.clear(); // what is found counts all the same
    const precompile::Headers headers = precompile::headers_of(source, words);
    if (headers.found.empty()) return {};
    // Names and contents: a cache must hit when an installation moved.
    Sha256 hash;
    for (const auto& [name, digest] : headers.found) hash.update_field(name).update_field(to_hex(digest));
    return to_hex(hash.finish());
}

} // namespace warmgraph
