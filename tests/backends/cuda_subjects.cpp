// The CUDA device for the conformance suite: the device in $WARMGRAPH_TEST_CUDA, or the first one.
#include "conformance.hpp"
#include "cuda_program.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::backends::test {

std::vector<Subject> subjects()
{
    const auto open = [] { return make_cuda_backend()->open(environment("WARMGRAPH_TEST_CUDA").value_or("")); };
    return {{"cuda", open, k_cuda_program, "extern \"C\" __global__ void broken(int* x) { x[0] = undeclared_name; }",
             "undeclared_name"}};
}

} // namespace warmgraph::backends::test
