// Which kinds of a cache are switched on: CacheOptions::kinds, $WARMGRAPH_KINDS.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/store/settings.hpp"

namespace warmgraph {

using store::parse_kinds;

/// Why nothing is found: "compiled programs are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)"
[[nodiscard]] std::string switched_off(std::string_view kind);

} // namespace warmgraph
