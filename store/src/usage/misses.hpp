// The misses of a function, or of programs. Written at a miss, also by a read-only store; never at a hit.
#pragma once

#include <string_view>

#include "tiers/local/disk.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::store {

/// Reads the misses in a folder. Empty when the file does not exist.
[[nodiscard]] Result<Misses> read_misses(const Disk& disk, const Path& folder);
/// Waits a few milliseconds for another writer, then gives up. If the call's guards are not known, `call` is empty, and
/// the guards of the miss before it stay.
[[nodiscard]] Result<void> write_miss(const Disk& disk, const Path& folder, const Miss& miss, std::string_view call);

} // namespace warmgraph::store
