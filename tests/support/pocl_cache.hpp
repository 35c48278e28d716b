// Sets the folder of PoCL's compiled kernels, so that tests share them: compiling the kernels of a test takes longer
// than the test.
#pragma once

#include <cstdlib>

#include "temp_dir.hpp"

namespace warmgraph::test {

/// Call this before the first OpenCL call, which reads the variables. ctest sets one folder for all tests; without it,
/// this process uses its own folder. POCL_KERNEL_CACHE=0 would lose work-group functions (PoCL 3.1;
/// backends/opencl/NOTES.md).
inline void use_pocl_cache()
{
    ::unsetenv("POCL_KERNEL_CACHE");
    static const TempDir own_cache;
    ::setenv("POCL_CACHE_DIR", own_cache.path().c_str(), 0);
}

} // namespace warmgraph::test
