// Programs of the fake: one declaration a line.
//
//   kernel add_scalar(memory x, value amount, value n)     one of kernels.hpp, with its very arguments
//   variable tables = 1 2 3                                i32 elements, a __device__ variable
//
// Lines that begin with # or // are skipped: what a header holds changes nothing here.
#pragma once

#include <string>

#include "image.hpp"

namespace fake_cuda {

struct Compiled {
    Image image;
    std::string log; ///< "line 7: ..." of what is wrong; empty: it compiled
};
[[nodiscard]] Compiled compile_source(const std::string& source, int architecture);

} // namespace fake_cuda
