// Sets PoCL's folder for compiled kernels before the first OpenCL call. One file of each binary includes this.
#pragma once

#include <cstdlib>

#include "temp_dir.hpp"

namespace warmgraph::backends::test {

inline const bool k_has_own_pocl_cache = [] {
    static const warmgraph::test::TempDir folder;
    ::setenv("POCL_CACHE_DIR", folder.path().c_str(), 0); // ctest sets a folder that all tests share
    ::unsetenv("POCL_KERNEL_CACHE"); // off, an image would lack later launches' functions (NOTES.md)
    return true;
}();

} // namespace warmgraph::backends::test
