// Where PoCL keeps what it compiled: compiling the kernels of a test takes longer than the test.
#pragma once

#include <cstdlib>

#include "temp_dir.hpp"

namespace warmgraph::test {

/// Before the first OpenCL call, which reads the variables. ctest names a folder that all tests share; without one this process has
/// its own. Not POCL_KERNEL_CACHE=0: PoCL 3.1 then loses work-group functions (backends/opencl/NOTES.md).
inline void use_pocl_cache()
{
    ::unsetenv("POCL_KERNEL_CACHE");
    static const TempDir own_cache;
    ::setenv("POCL_CACHE_DIR", own_cache.path().c_str(), 0);
}

} // namespace warmgraph::test
