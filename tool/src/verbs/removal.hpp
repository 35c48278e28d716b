// What was removed from a folder, or would be, in words.
#pragma once

#include <string>

#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::tool {

/// "2 entries, 1 image, 0 quarantined files (41 KiB)"; of other kinds those that there are: ", 1 compiled program"
[[nodiscard]] std::string text_of(const store::Removal& removal);

} // namespace warmgraph::tool
