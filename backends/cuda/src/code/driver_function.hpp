// A launch, and so a node, may hold a CUkernel where a CUfunction is expected.
#pragma once

#include "device/driver.hpp"

namespace warmgraph::backends::cuda {

struct DriverFunction {
    CUfunction function = nullptr; ///< never a kernel in disguise
    CUmodule module = nullptr;     ///< that it belongs to
};

[[nodiscard]] Result<DriverFunction> driver_function(const Driver& driver, CUfunction given);

} // namespace warmgraph::backends::cuda
