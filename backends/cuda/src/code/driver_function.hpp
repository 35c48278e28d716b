// Resolves the CUfunction of a launch or node, which may really be a CUkernel.
#pragma once

#include "device/driver.hpp"

namespace warmgraph::backends::cuda {

struct DriverFunction {
    CUfunction function = nullptr; ///< never a CUkernel
    CUmodule module = nullptr;     ///< the function's module
};

[[nodiscard]] Result<DriverFunction> driver_function(const Driver& driver, CUfunction given);

} // namespace warmgraph::backends::cuda
