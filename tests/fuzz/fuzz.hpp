// Helpers that the fuzz targets share: requirements, and checks of an accepted entry.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "sample_entry.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/image_use.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::fuzz {

/// Aborts when the requirement is not true. libFuzzer keeps the input that led here.
inline void require(bool holds, const char* what)
{
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

/// The limits of the product, but lower for sizes that would only make the fuzzer slow.
inline cachefmt::Limits limits()
{
    cachefmt::Limits result;
    result.payload_bytes = 4 << 20;
    result.payload_stored_bytes = 1 << 20;
    return result;
}

/// A refusal must have a code that means damage, and a text. An accepted entry must be valid and printable, and must
/// stay the same when it is written and read again.
inline void check_decoded(const Result<cachefmt::Entry>& decoded)
{
    if (!decoded) {
        const ErrorCode code = decoded.error().code;
        require(code == ErrorCode::corrupt || code == ErrorCode::stale || code == ErrorCode::untrusted,
                "a refusal is corrupt, stale or untrusted");
        require(!decoded.error().message.empty(), "a refusal says why");
        return;
    }
    require(cachefmt::validate(decoded->graph).has_value(), "what is accepted is valid");
    require(cachefmt::guards_digest(decoded->header.guards) == decoded->header.key.guards_digest,
            "the guards are the key's");
    const auto again = cachefmt::encode(*decoded);
    require(again.has_value(), "what is accepted can be written");
    const auto twice = cachefmt::decode(*again, decoded->header.key);
    require(twice.has_value() && cachefmt::graph_digest(twice->graph) == cachefmt::graph_digest(decoded->graph),
            "what was written reads the same");
    static_cast<void>(cachefmt::to_readable(*decoded));
    static_cast<void>(cachefmt::to_json(*decoded));
    static_cast<void>(cachefmt::to_dot(*decoded));
    static_cast<void>(cachefmt::blobs_of(decoded->graph));
}

} // namespace warmgraph::fuzz
