// A text for the files that were removed, or would be removed.
#pragma once

#include <string>

#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::tool {

/// Returns e.g. "2 entries, 1 image, 0 quarantined files (41 KiB)"; other kinds only if not zero: ", 1 compiled
/// program".
[[nodiscard]] std::string text_of(const store::Removal& removal);

} // namespace warmgraph::tool
