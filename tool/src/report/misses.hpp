// Why a function missed, as far as the folder knows.
#pragma once

#include <vector>

#include "context.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::tool {

/// The misses that are left beside a function, the newest first: today the last one. Each is compared with the nearest of
/// the `recorded` variants. One that was recorded since agrees with its own entry: `mismatches` is empty then.
[[nodiscard]] Json last_misses(const store::FunctionUsage& usage, const std::vector<cachefmt::EntryHeader>& recorded);

} // namespace warmgraph::tool
