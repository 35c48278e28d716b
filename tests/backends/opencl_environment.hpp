// Sets the folder for PoCL's compiled kernels before the first OpenCL call. One file of each test program includes this
// header.
#pragma once

#include <cstdlib>

#include "temp_dir.hpp"

namespace warmgraph::backends::test {

inline const bool k_has_own_pocl_cache = [] {
    static const warmgraph::test::TempDir folder;
    ::setenv("POCL_CACHE_DIR", folder.path().c_str(), 0); // keeps a folder that is set: ctest sets one for all tests
    ::unsetenv("POCL_KERNEL_CACHE"); // if the cache was off, an image would lack functions of later launches (NOTES.md)
    return true;
}();

} // namespace warmgraph::backends::test
