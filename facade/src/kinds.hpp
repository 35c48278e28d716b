// Which kinds of a cache are switched on: CacheOptions::kinds, $WARMGRAPH_KINDS.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"

namespace warmgraph {

/// What is off is neither looked up, read, written nor counted.
struct Kinds {
    bool graphs = true;   ///< entries, with their images and constants
    bool compiled = true; ///< programs
    bool tuned = true;    ///< configurations of kernels
    bool profile = true;  ///< shapes
    bool operator==(const Kinds&) const = default;
};

/// "all" and "": all; "graphs,compiled": these alone; "-tuned,-profile": all but these. invalid_argument for an unknown
/// kind, and for kinds with and without '-' together, names `what`, where the text stood.
[[nodiscard]] Result<Kinds> parse_kinds(std::string_view what, std::string_view text);

/// Why nothing is found: "compiled programs are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)"
[[nodiscard]] std::string switched_off(std::string_view kind);

} // namespace warmgraph
