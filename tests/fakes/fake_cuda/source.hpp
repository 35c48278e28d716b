// The programs of the fake driver. Each line has one declaration:
//
// kernel add_scalar(memory x, value amount, value n)     one of kernels.hpp, with exactly its arguments
// variable tables = 1 2 3                                i32 elements, a __device__ variable
//
// Lines that begin with # or // are skipped, so a header's contents have no effect.
#pragma once

#include <string>

#include "image.hpp"

namespace fake_cuda {

struct CompiledSource {
    Image image;
    std::string log; ///< the first error, e.g. "line 7: ..."; empty if the program is right
};
[[nodiscard]] CompiledSource compile_source(const std::string& source, int architecture);

} // namespace fake_cuda
