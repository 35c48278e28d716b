// What was removed from a folder, or would be, in words.
#pragma once

#include <string>

#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::tool {

/// "2 entries, 1 image, 0 quarantined files (41 KiB)"; with ", 3 tuned configurations", ", 1 compiled program" or
/// ", 1 shape profile" and ", 1 artifact of PyTorch" where there are any
[[nodiscard]] std::string text_of(const store::Removal& removal);

} // namespace warmgraph::tool
