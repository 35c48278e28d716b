#include "code/driver_function.hpp"

namespace warmgraph::backends::cuda {

Result<DriverFunction> driver_function(const Driver& driver, CUfunction given)
{
    DriverFunction found{given, nullptr};
    const CUresult plain = driver.status("cuFuncGetModule", driver.cuFuncGetModule, &found.module, given);
    if (plain == CUDA_SUCCESS) return found;
    if (plain != CUDA_ERROR_INVALID_HANDLE && plain != CUDA_ERROR_INVALID_VALUE)
        return std::unexpected(driver.error("cuFuncGetModule", plain));
    const auto kernel = reinterpret_cast<CUkernel>(given);
    if (auto done = driver.call("cuKernelGetFunction", driver.cuKernelGetFunction, &found.function, kernel); !done)
        return std::unexpected(std::move(done.error()));
    if (auto done = driver.call("cuFuncGetModule", driver.cuFuncGetModule, &found.module, found.function); !done)
        return std::unexpected(std::move(done.error()));
    return found;
}

} // namespace warmgraph::backends::cuda
