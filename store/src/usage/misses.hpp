// The misses of a function, or of programs: written at the miss, also by a store that was opened to be read, and never for a hit.
#pragma once

#include <string_view>

#include "tiers/local/disk.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::store {

/// Those of the folder that they lie in. Empty where there is no file.
[[nodiscard]] Result<Misses> read_misses(const Disk& disk, const Path& folder);
/// Waits a few milliseconds for another writer, then gives up. Where nobody knows the guards of the call, `call` is empty, and
/// those of the miss before it stay.
[[nodiscard]] Result<void> write_miss(const Disk& disk, const Path& folder, const Miss& miss, std::string_view call);

} // namespace warmgraph::store
