// What to do about a fact that differs.
#pragma once

#include <string>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

/// `recorded` and `now` are nullptr where the fact is absent.
[[nodiscard]] std::string cure_of(const std::string& name, const std::string* recorded, const std::string* now,
                                  const Relaxation& relaxation);

} // namespace warmgraph::guards
