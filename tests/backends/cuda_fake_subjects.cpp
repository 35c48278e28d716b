// The CUDA backend over a driver that runs on the host: its own logic, where there is no GPU.
#include "conformance.hpp"
#include "fake_cuda/steering.hpp"

namespace warmgraph::backends::test {

std::vector<Subject> subjects()
{
    using warmgraph::test::FakeCuda;
    using warmgraph::test::k_fake_cuda_program;
    static const auto backend = make_cuda_backend(FakeCuda::options());
    static const FakeCuda fake;
    // Bulk memory work through the host, as where the driver has no compiler for PTX; and by the backend's kernels.
    const auto open = [](bool takes_kernels) {
        return [takes_kernels] {
            fake.take_bulk_kernels(takes_kernels);
            return backend->open("");
        };
    };
    const std::string broken = std::string(k_fake_cuda_program) + "kernel explode(value n)\n";
    return {{"cuda_fake", open(false), k_fake_cuda_program, broken, "line 7"},
            {"cuda_fake_with_bulk_kernels", open(true), k_fake_cuda_program, broken, "line 7"}};
}

} // namespace warmgraph::backends::test
