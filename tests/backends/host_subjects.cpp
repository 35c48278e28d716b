// The backends that need no device: the fake backend, and the CUDA backend with the fake driver, which runs on the
// host.
#include "conformance.hpp"
#include "fake_cuda/steering.hpp"
#include "warmgraph/backends/fake.hpp"

namespace warmgraph::backends::test {
namespace {

Subject fake()
{
    const std::string program = "kernel iota(memory x, value n)\n"
                                "kernel add_scalar(memory x, value amount, value n)\n"
                                "kernel scale(memory x, value factor, value n)\n"
                                "kernel copy(memory to, memory from, value n)\n"
                                "kernel add(memory out, memory a, memory b, value n)\n"
                                "kernel sum(memory out, memory x, local scratch, value n)\n";
    return {"fake", [] { return make_fake_backend()->open(""); }, program, program + "kernel explode(value n)\n",
            "line 7"};
}

Subject cuda(const std::string& name, bool takes_kernels)
{
    using warmgraph::test::FakeCuda;
    using warmgraph::test::k_fake_cuda_program;
    const auto open = [takes_kernels] {
        static const auto backend = make_cuda_backend(FakeCuda::options());
        static const FakeCuda driver;
        driver.take_bulk_kernels(takes_kernels);
        return backend->open("");
    };
    return {name, open, k_fake_cuda_program, std::string(k_fake_cuda_program) + "kernel explode(value n)\n", "line 7"};
}

} // namespace

std::vector<Subject> subjects()
{
    // The last two do bulk memory work through the host (as with a driver that has no PTX compiler), and with the
    // backend's kernels.
    return {fake(), cuda("cuda_fake", false), cuda("cuda_fake_with_bulk_kernels", true)};
}

} // namespace warmgraph::backends::test
