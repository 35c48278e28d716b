// The cures for facts that differ.
#pragma once

#include <string>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

/// Returns the cure for a fact that differs. `recorded` and `now` are nullptr if the fact is absent.
[[nodiscard]] std::string cure_of(const std::string& name, const std::string* recorded, const std::string* now,
                                  const Relaxation& relaxation);

} // namespace warmgraph::guards
