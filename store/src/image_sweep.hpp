// Removing images that no entry names.
#pragma once

#include "disk.hpp"

namespace warmgraph::store {

/// Removes images that no entry names and that were last published more than `grace` ago; returns how many. Removes
/// none while a newer warmgraph's entries are there, because what they name cannot be read.
[[nodiscard]] Result<std::uint64_t> sweep_images(const Disk& disk, std::chrono::seconds grace);

} // namespace warmgraph::store
