#include <chrono>

#include <benchmark/benchmark.h>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::bench {
namespace {

/// A long graph: a chain of `nodes` kernels with eight parameters.
cachefmt::Entry entry(std::uint32_t nodes)
{
    cachefmt::Entry result;
    auto& graph = result.graph;
    graph.regions = {{"x", cachefmt::RegionKind::input, 4096, 4, {}},
                     {"scratch", cachefmt::RegionKind::arena, 1 << 20, 1, {}}};
    graph.scalars = {{"position", DType::i32}};
    graph.images = {{sha256(as_bytes("image")), 1000, {}, "program"}};
    for (std::uint32_t i = 0; i < nodes; ++i) {
        cachefmt::KernelNode node;
        node.kernel = "kernel_" + std::to_string(i % 16);
        node.grid = {1 + i % 64, 1, 1};
        node.block = {64, 1, 1};
        for (std::uint32_t p = 0; p < 8; ++p) {
            cachefmt::Param param;
            if (p < 4) {
                param.kind = cachefmt::ParamKind::memory;
                param.slots = {{cachefmt::SlotKind::region, p % 2, 0, 8, p % 2 == 0 ? 0 : 256 * (i % 100)}};
            } else {
                append(param.value, i * 2654435761U + p);
                if (p == 7) {
                    param.value.assign(4, std::byte{});
                    param.slots = {{cachefmt::SlotKind::scalar, 0, 0, 4, 1}};
                }
            }
            node.params.push_back(param);
        }
        graph.nodes.emplace_back(node);
        if (i > 0) graph.edges.push_back({i - 1, i});
    }
    auto& header = result.header;
    for (int i = 0; i < 30; ++i)
        header.guards.facts.push_back(
            {"fact." + std::to_string(100 + i), std::string(200, 'v'), cachefmt::Role::must_match});
    header.info.node_count = nodes;
    header.info.image_count = 1;
    header.key = {{"bench_static_clgraphcache_0123456789ab", "world1global_rank0", "f"},
                  cachefmt::guards_digest(header.guards)};
    return result;
}

void decode_per_mb(benchmark::State& state)
{
    const cachefmt::Entry original = entry(4000);
    cachefmt::EncodeOptions plain;
    plain.compress_above = UINT64_MAX; // measures the time per verified byte, without compression
    const auto bytes = cachefmt::encode(original, plain);
    if (!bytes) return state.SkipWithError(bytes.error().message.c_str());
    for (auto _ : state) {
        const auto start = std::chrono::steady_clock::now();
        auto decoded = cachefmt::decode(*bytes, original.header.key);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (!decoded) state.SkipWithError(decoded.error().message.c_str());
        state.SetIterationTime(took.count() * 1e6 / static_cast<double>(bytes->size()));
    }
}
BENCHMARK(decode_per_mb)->UseManualTime()->Iterations(20)->Repetitions(5)->ReportAggregatesOnly();

void decode_header(benchmark::State& state)
{
    const cachefmt::Entry original = entry(100);
    const auto bytes = cachefmt::encode(original);
    if (!bytes) return state.SkipWithError(bytes.error().message.c_str());
    for (auto _ : state) {
        const auto header = cachefmt::decode_header(*bytes, original.header.key);
        if (!header) state.SkipWithError(header.error().message.c_str());
    }
}
BENCHMARK(decode_header)->Repetitions(5)->ReportAggregatesOnly();

} // namespace
} // namespace warmgraph::bench
