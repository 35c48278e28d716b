// The memory that a decoded entry takes. In a hostile flatbuffer many places can share one table or byte vector, so a
// small file can become huge: the memory is computed before anything is copied.
#pragma once

#include <cstdint>

#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] std::uint64_t footprint(const Graph& graph) noexcept;
[[nodiscard]] std::uint64_t footprint(const EntryHeader& header) noexcept;

} // namespace warmgraph::cachefmt
