// The device for tests of promises that several devices can show: PoCL, or a CUDA device (WARMGRAPH_PROMISES_ON_CUDA),
// which is real or fake. All of these devices have the kernels of the conformance suite.
#pragma once

#include <array>

#include "promise.hpp"

#ifdef WARMGRAPH_PROMISES_ON_CUDA
#include "cuda_or_fake.hpp"
#else
#include "facade_fixture.hpp"
#include "opencl_program.hpp"
#endif

namespace warmgraph::test {

#ifdef WARMGRAPH_PROMISES_ON_CUDA
inline constexpr const char* k_promise_device = "cuda";
inline constexpr const char* k_promise_program = k_program;
inline constexpr const char* k_program_with_header = R"(
#include "wg_promised.h"
extern "C" __global__ void scale(const int* x, int* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i] * FACTOR; })";
inline constexpr std::array k_include_options{"-I", "--include-path="};
inline void prepare_process() { choose_driver(); }
#else
inline constexpr const char* k_promise_device = "opencl";
inline constexpr const char* k_promise_program = backends::test::k_opencl_program;
inline constexpr const char* k_program_with_header = R"(
#include "wg_promised.h"
kernel void scale(global const int* x, global int* y) { size_t i = get_global_id(0); y[i] = x[i] * FACTOR; })";
inline constexpr std::array k_include_options{"-I"};
inline void prepare_process() { use_pocl_cache(); }
#endif

class DevicePromise : public PromiseTest {
protected:
    static constexpr std::int32_t k_number = k_count;

    DevicePromise() : PromiseTest((prepare_process(), k_promise_device)) {}
    /// Shorthands for launches: to = from; to += amount; out = a + b.
    void copy(Recorder& r, const KernelArg& to, const KernelArg& from) { launch(r, "copy", {to, from, k_number}); }
    void add_scalar(Recorder& r, const KernelArg& to, std::int32_t amount)
    {
        launch(r, "add_scalar", {to, amount, k_number});
    }
    void add(Recorder& r, const KernelArg& out, const KernelArg& a, const KernelArg& b)
    {
        launch(r, "add", {out, a, b, k_number});
    }
    void launch(Recorder& r, std::string_view kernel, const std::vector<KernelArg>& args)
    {
        r.stream().launch_list(program, kernel, k_launch, args);
    }

    Program program = device.program("promises", k_promise_program);
};

} // namespace warmgraph::test
