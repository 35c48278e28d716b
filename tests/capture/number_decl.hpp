// Makes a declared scalar in the form that capture/ uses.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "warmgraph/capture/interface.hpp"

namespace warmgraph::test {

[[nodiscard]] inline NumberDecl number(std::string name, DType dtype,
                                       std::optional<std::pair<double, double>> range = std::nullopt)
{
    return {std::move(name), dtype, range};
}

} // namespace warmgraph::test
