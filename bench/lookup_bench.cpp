// 10,000 entries on disk: 157 functions with 64 variants each, as many as the default limit allows.
#include <benchmark/benchmark.h>

#include "temp_dir.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_functions = 157;
constexpr int k_variants = 64;

cachefmt::Entry entry(int function, int variant)
{
    cachefmt::Entry result;
    auto& header = result.header;
    for (int i = 0; i < 30; ++i)
        header.guards.facts.push_back(
            {"fact." + std::to_string(100 + i), "value " + std::to_string(i), cachefmt::Role::must_match});
    header.guards.tensors.push_back({"x", DType::f32, {variant + 1}, {1}, "opencl:0", 256, 0});
    header.key = {{"bench_static_clgraphcache_0123456789ab", "world1global_rank0", "f" + std::to_string(function)},
                  cachefmt::guards_digest(header.guards)};
    result.graph.regions.push_back(
        {"x", cachefmt::RegionKind::input, 4ULL * (static_cast<std::uint64_t>(variant) + 1), 4, {}});
    result.graph.nodes.emplace_back(cachefmt::EmptyNode{});
    header.info.node_count = 1;
    return result;
}

class FilledStore {
public:
    FilledStore()
    {
        store = *store::LocalStore::open(dir.path() / "cache");
        for (int function = 0; function < k_functions; ++function)
            for (int variant = 0; variant < k_variants; ++variant)
                if (auto published = store->publish(entry(function, variant)); !published) std::abort();
    }
    test::TempDir dir;
    std::unique_ptr<store::LocalStore> store;
};

FilledStore& filled()
{
    static FilledStore result;
    return result;
}

void lookup_exact(benchmark::State& state)
{
    auto& store = *filled().store;
    const cachefmt::Entry wanted = entry(77, 31);
    for (auto _ : state) {
        const auto header = store.header(wanted.header.key);
        if (!header || !*header || !guards::evaluate((**header).guards, wanted.header.guards).empty())
            state.SkipWithError("the entry is not found");
    }
}
BENCHMARK(lookup_exact)->Repetitions(5)->ReportAggregatesOnly();

void lookup_scan(benchmark::State& state)
{
    auto& store = *filled().store;
    const cachefmt::Entry wanted = entry(77, 1000);
    for (auto _ : state) {
        const auto variants = store.variants(wanted.header.key.function);
        std::size_t differing = 0;
        for (const auto& variant : *variants)
            differing += guards::evaluate(variant.header->guards, wanted.header.guards).empty() ? 0 : 1;
        if (differing != k_variants) state.SkipWithError("not every variant was judged");
    }
}
BENCHMARK(lookup_scan)->Repetitions(5)->ReportAggregatesOnly();

} // namespace
} // namespace warmgraph::bench
