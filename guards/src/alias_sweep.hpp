// Finds overlapping tensors. Uses memory of the caller, because a call must not allocate memory.
#pragma once

#include <cstdint>
#include <span>

#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph::guards {

/// Fills `groups` as alias_groups() describes. `order` is scratch; all three have the same length.
void sweep_aliases(std::span<const TensorArg> tensors, std::span<std::uint32_t> order,
                   std::span<std::uint32_t> groups) noexcept;

} // namespace warmgraph::guards
