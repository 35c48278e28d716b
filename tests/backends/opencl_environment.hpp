// Where PoCL keeps its kernels, before the first OpenCL call. Included by one file of each binary.
#pragma once

#include <cstdlib>

#include "temp_dir.hpp"

namespace warmgraph::backends::test {

inline const bool k_has_own_pocl_cache = [] {
    static const warmgraph::test::TempDir folder;
    ::setenv("POCL_CACHE_DIR", folder.path().c_str(), 0); // ctest names one that all tests share
    ::unsetenv("POCL_KERNEL_CACHE"); // with the cache off, an image lacks what is launched after the first (NOTES.md)
    return true;
}();

} // namespace warmgraph::backends::test
