// The folder of PoCL's compiled kernels: compiling a test's kernels takes longer than the test.
#pragma once

#include <cstdlib>

#include "temp_dir.hpp"

namespace warmgraph::test {

/// Must be called before the first OpenCL call, which reads the variables. ctest names a folder that all tests share;
/// without it this process has its own. POCL_KERNEL_CACHE=0 is not usable: PoCL 3.1 then loses work-group functions
/// (backends/opencl/NOTES.md).
inline void use_pocl_cache()
{
    ::unsetenv("POCL_KERNEL_CACHE");
    static const TempDir own_cache;
    ::setenv("POCL_CACHE_DIR", own_cache.path().c_str(), 0);
}

} // namespace warmgraph::test
