#include "cuda_chain.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>

namespace warmgraph::bench {
namespace {

constexpr std::uint32_t k_threads = 256;
constexpr std::uint32_t k_kernels = 8;

// Each node halves its input, so that values stay small in a chain of any length.
constexpr const char* k_chain_source = R"cuda(
#define STEP(name, term)                                                                                           \
    extern "C" __global__ void name(const float* x, const float* from, float* to, float factor, int position, int n) \
    {                                                                                                                \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                                         \
        if (i < n) to[i] = 0.5f * from[i] + factor * (term);                                                         \
    }
STEP(step0, x[i] + position)
STEP(step1, x[i] * position)
STEP(step2, x[i] - position)
STEP(step3, fmaxf(x[i], (float)position))
STEP(step4, fminf(x[i], (float)position))
STEP(step5, sqrtf(fabsf(x[i]) + position))
STEP(step6, x[i] * x[i] + position)
STEP(step7, fabsf(x[i] - position))
)cuda";

std::vector<float> values(float first)
{
    std::vector<float> result(ChainDevice::k_items);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = first + 0.001F * static_cast<float>(i);
    return result;
}

} // namespace

ChainDevice::ChainDevice()
    : program(device.program("chain", k_chain_source)),
      x(device.upload(std::span<const float>(values(1.0F)))),
      other(device.upload(std::span<const float>(values(2.0F)))),
      y(device.allocate(k_items * sizeof(float)))
{
}

void enqueue_chain(Stream& stream, const Program& program, std::uint32_t nodes, std::uint32_t seed, Address x,
                   Address y, const std::array<Address, 2>& scratch, std::int32_t position)
{
    const Launch geometry{.grid = {ChainDevice::k_items / k_threads, 1, 1}, .block = {k_threads, 1, 1}};
    Address from = x;
    for (std::uint32_t i = 0; i < nodes; ++i) {
        const Address to = i + 1 == nodes ? y : scratch[i % 2];
        const float factor = 1.0F / static_cast<float>(1 + (i + seed) % 97);
        stream.launch(program, fmt::format("step{}", (i + seed) % k_kernels), geometry, x, from, to, factor, position,
                      static_cast<std::int32_t>(ChainDevice::k_items));
        from = to;
    }
}

Spec chain_spec(const ChainDevice& shared)
{
    Spec spec;
    spec.inputs = {input("x", f32, {ChainDevice::k_items})};
    spec.outputs = {output("y", f32, {ChainDevice::k_items})};
    spec.scalars = {scalar("position", i32, 0, 4095)};
    spec.code = {shared.program};
    return spec;
}

Function wrap_chain(Cache& cache, const ChainDevice& shared, std::uint32_t nodes, std::uint32_t seed)
{
    return cache.wrap(fmt::format("chain{}_{}", nodes, seed), shared.device, chain_spec(shared),
                      [program = shared.program, nodes, seed](Recorder& r) {
                          const std::array<Address, 2> scratch{r.alloc("even", ChainDevice::k_items * sizeof(float)),
                                                               r.alloc("odd", ChainDevice::k_items * sizeof(float))};
                          enqueue_chain(r.stream(), program, nodes, seed, r["x"], r["y"], scratch,
                                        r.scalar<std::int32_t>("position"));
                      });
}

Cache open_cache(const std::string& folder, Policy policy)
{
    CacheOptions options;
    options.model = "bench";
    options.cache_dir = folder;
    options.policy = policy;
    return Cache{options};
}

void expect_replayed(const Function& function)
{
    const Report report = function.report();
    if (report.outcome != Outcome::replayed)
        throw std::runtime_error(
            fmt::format("'{}' was {}: {}", report.function, to_string(report.outcome), report.reason));
}

} // namespace warmgraph::bench
