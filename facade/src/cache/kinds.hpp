// Which kinds of a cache are switched on: CacheOptions::kinds, $WARMGRAPH_KINDS.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph {

/// Those that are on: what is off is neither looked up, read, written nor counted. "all" and "": all; "entries,compiled":
/// these alone; "-tuned,-profiles": all but these. invalid_argument for an unknown kind, and for kinds with and without '-'
/// together, names `what`, where the text stood.
[[nodiscard]] Result<store::KindSet> parse_kinds(std::string_view what, std::string_view text);

/// Why nothing is found: "compiled programs are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)"
[[nodiscard]] std::string switched_off(std::string_view kind);

} // namespace warmgraph
