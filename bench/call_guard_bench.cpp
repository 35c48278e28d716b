#include <benchmark/benchmark.h>

#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph::bench {
namespace {

struct Call {
    explicit Call(std::size_t count)
    {
        for (std::size_t i = 0; i < count; ++i) {
            guards::TensorArg tensor;
            tensor.base = 1000 + i;
            tensor.dtype = DType::f32;
            tensor.rank = 3;
            tensor.sizes = {4, 128, 64};
            tensor.strides = {8192, 64, 1};
            tensors.push_back(tensor);
            names.push_back("t" + std::to_string(i));
        }
    }
    std::vector<guards::TensorArg> tensors;
    std::vector<std::string> names;
};

void call_guard(benchmark::State& state)
{
    const Call call{static_cast<std::size_t>(state.range(0))};
    guards::CallGuard guard{guards::describe(call.tensors, call.names, "opencl:"), {}, 0};
    for (auto _ : state) {
        if (!guard.matches(call.tensors, {})) state.SkipWithError("the guard refuses its own call");
    }
}
BENCHMARK(call_guard)->Arg(64)->Repetitions(9)->ReportAggregatesOnly();

void call_guard_moved(benchmark::State& state)
{
    Call call{static_cast<std::size_t>(state.range(0))};
    guards::CallGuard guard{guards::describe(call.tensors, call.names, "opencl:"), {}, 0};
    for (auto _ : state) {
        call.tensors.front().base ^= 0x10000;
        if (!guard.matches(call.tensors, {})) state.SkipWithError("the guard refuses a moved input");
    }
}
BENCHMARK(call_guard_moved)->Arg(64)->Repetitions(9)->ReportAggregatesOnly();

} // namespace
} // namespace warmgraph::bench
