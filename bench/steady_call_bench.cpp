// Host time to enqueue the same 32 kernels: bare OpenCL, a steady call, a call whose input moved. Only the enqueueing is
// timed; the queue is drained between iterations.
#include <chrono>
#include <vector>

#include <CL/cl.h>
#include <benchmark/benchmark.h>

#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_nodes = 32;
constexpr std::size_t k_items = 64;
constexpr const char* k_source = "__kernel void add_one(__global const float* x, __global float* y) { size_t i = "
                                 "get_global_id(0); y[i] = x[i] + 1.0f; }";

template <class Enqueue, class Drain>
void time_enqueue(benchmark::State& state, Enqueue enqueue, Drain drain)
{
    for (auto _ : state) {
        const auto start = std::chrono::steady_clock::now();
        enqueue();
        state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        drain();
    }
}

void bare_enqueue(benchmark::State& state)
{
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
        return state.SkipWithError("no OpenCL device");
    cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
    const char* source = k_source;
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
    clBuildProgram(program, 1, &device, "", nullptr, nullptr);
    cl_mem memory[2] = {clCreateBuffer(context, CL_MEM_READ_WRITE, k_items * 4, nullptr, nullptr),
                        clCreateBuffer(context, CL_MEM_READ_WRITE, k_items * 4, nullptr, nullptr)};
    std::vector<cl_kernel> kernels;
    for (int i = 0; i < k_nodes; ++i) {
        kernels.push_back(clCreateKernel(program, "add_one", nullptr));
        clSetKernelArg(kernels.back(), 0, sizeof(cl_mem), &memory[i % 2]);
        clSetKernelArg(kernels.back(), 1, sizeof(cl_mem), &memory[1 - i % 2]);
    }
    const std::size_t global = k_items, local = 16;
    const auto enqueue = [&] {
        for (cl_kernel kernel : kernels)
            clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr);
    };
    enqueue();
    clFinish(queue);
    time_enqueue(state, enqueue, [&] { clFinish(queue); });
    for (cl_kernel kernel : kernels) clReleaseKernel(kernel);
    for (cl_mem object : memory) clReleaseMemObject(object);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}
BENCHMARK(bare_enqueue)->UseManualTime()->Iterations(400)->Repetitions(7)->ReportAggregatesOnly();

class Cached {
public:
    Cached()
        : cache{[this] {
              CacheOptions options;
              options.model = "bench";
              options.cache_dir = dir.path().string();
              options.policy = Policy::read_write;
              return options;
          }()},
          function{cache.wrap(
              "chain", device,
              Spec{.inputs = {input("x", f32, {k_items})}, .outputs = {output("y", f32, {k_items})}, .code = {program}},
              [this](Recorder& r) {
                  const Address scratch = r.alloc("scratch", k_items * 4);
                  for (int i = 0; i < k_nodes; ++i)
                      r.stream().launch(program, "add_one", {.grid = {4, 1, 1}, .block = {16, 1, 1}},
                                        i == 0 ? r["x"] : (i % 2 == 0 ? r["y"] : scratch),
                                        i % 2 == 0 ? scratch : r["y"]);
              })}
    {
    }
    test::TempDir dir;
    Device device{"opencl"};
    Program program = device.program("bench", k_source);
    Buffer x = device.upload<float>(std::vector<float>(k_items, 1.0F)),
           other = device.upload<float>(std::vector<float>(k_items, 2.0F));
    Buffer y = device.allocate(k_items * 4);
    Cache cache;
    Function function;
};

void steady_call(benchmark::State& state)
{
    Cached cached;
    const auto call = [&] { cached.function({{"x", cached.x}, {"y", cached.y}}); };
    call();
    cached.device.synchronize();
    time_enqueue(state, call, [&] { cached.device.synchronize(); });
}
BENCHMARK(steady_call)->UseManualTime()->Iterations(400)->Repetitions(7)->ReportAggregatesOnly();

void steady_call_moved(benchmark::State& state)
{
    Cached cached;
    bool second = false;
    const auto call = [&] {
        second = !second;
        cached.function({{"x", second ? cached.other : cached.x}, {"y", cached.y}});
    };
    call();
    cached.device.synchronize();
    time_enqueue(state, call, [&] { cached.device.synchronize(); });
}
BENCHMARK(steady_call_moved)->UseManualTime()->Iterations(400)->Repetitions(7)->ReportAggregatesOnly();

} // namespace
} // namespace warmgraph::bench
