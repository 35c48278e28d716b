// The CUDA backend over a driver that runs on the host: its own logic, where there is no GPU.
#include "conformance.hpp"
#include "fake_cuda/steering.hpp"

namespace warmgraph::backends::test {

std::vector<Subject> subjects()
{
    using warmgraph::test::FakeCuda;
    using warmgraph::test::k_fake_cuda_program;
    static const auto backend = make_cuda_backend(FakeCuda::options());
    return {{"cuda_fake", [] { return backend->open(""); }, k_fake_cuda_program,
             std::string(k_fake_cuda_program) + "kernel explode(value n)\n", "line 7"}};
}

} // namespace warmgraph::backends::test
