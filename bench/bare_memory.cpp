#include "bare_memory.hpp"

#include <cstring>

namespace warmgraph::bench {
namespace {

using cachefmt::RegionKind;

constexpr std::uint64_t k_most_compared = 64ULL << 20U; // bytes of a state

} // namespace

BareMemory::BareMemory(const BareContext& context, const StoredEntry& stored) : m_context(context)
{
    const BareDriver& driver = context.driver;
    const auto& regions = stored.entry.graph.regions;
    const MemoryPlan plan = plan_memory(stored.entry);
    std::vector<std::uint64_t> starts;
    for (const auto& allocation : plan.allocations) {
        const std::uint64_t size = allocation.size + allocation.alignment;
        std::uint64_t start = 0;
        if (allocation.space == cachefmt::MemorySpace::host) {
            void* memory = nullptr;
            const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
            driver.call("cuMemHostAlloc", driver.cuMemHostAlloc, &memory, std::size_t{size}, flags);
            std::memset(memory, 0, size);
            start = reinterpret_cast<std::uintptr_t>(memory);
        } else {
            CUdeviceptr memory = 0;
            driver.call("cuMemAlloc", driver.cuMemAlloc, &memory, std::size_t{size});
            driver.call("cuMemsetD8Async", driver.cuMemsetD8Async, memory, static_cast<unsigned char>(0),
                        std::size_t{size}, context.stream);
            start = memory;
        }
        starts.push_back((start + allocation.alignment - 1) / allocation.alignment * allocation.alignment);
    }
    driver.call("cuStreamSynchronize", driver.cuStreamSynchronize, context.stream);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        m_regions.push_back(starts[plan.regions[i].allocation] + plan.regions[i].offset);
        if (regions[i].kind != RegionKind::constant || regions[i].size == 0) continue;
        const Bytes& contents =
            regions[i].digest != Digest{} ? stored.images.at(regions[i].digest) : regions[i].contents;
        driver.call("cuMemcpyHtoD", driver.cuMemcpyHtoD, CUdeviceptr{m_regions[i]},
                    static_cast<const void*>(contents.data()), contents.size());
    }
}

std::vector<std::size_t> compared_regions(const cachefmt::Graph& graph)
{
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const auto& region = graph.regions[i];
        if (region.size == 0) continue;
        if (region.kind == RegionKind::output || (region.kind == RegionKind::state && region.size <= k_most_compared))
            result.push_back(i);
    }
    return result;
}

Digest BareMemory::results(const cachefmt::Graph& graph) const
{
    const BareDriver& driver = m_context.driver;
    Sha256 sum;
    for (const std::size_t i : compared_regions(graph)) {
        Bytes contents(graph.regions[i].size);
        driver.call("cuMemcpyDtoH", driver.cuMemcpyDtoH, static_cast<void*>(contents.data()), CUdeviceptr{m_regions[i]},
                    contents.size());
        sum.update_field(contents);
    }
    return sum.finish();
}

} // namespace warmgraph::bench
