// How much memory a decoded entry takes. A hostile flatbuffer can point at one table or byte vector from many places,
// so its size says little about the size of what is built from it: this is counted before anything is copied.
#pragma once

#include <cstdint>

#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] std::uint64_t footprint(const Graph& graph) noexcept;
[[nodiscard]] std::uint64_t footprint(const EntryHeader& header) noexcept;

} // namespace warmgraph::cachefmt
