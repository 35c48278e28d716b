#include "warmgraph/replay/stored_graph.hpp"

namespace warmgraph::replay {

Result<void> check_regions(std::span<const DeclaredRegion> declared, const cachefmt::Graph& graph)
{
    if (graph.regions.size() < declared.size())
        return fail(ErrorCode::corrupt, "the entry has {} regions, the function declares {}", graph.regions.size(),
                    declared.size());
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const cachefmt::Region& region = graph.regions[i];
        const bool is_own = region.kind == cachefmt::RegionKind::arena || region.kind == cachefmt::RegionKind::constant;
        if (i < declared.size() ? region.kind != declared[i].kind || region.name != declared[i].name : !is_own)
            return fail(ErrorCode::corrupt, "region {} of the entry, '{}', does not match the function's declaration",
                        i, region.name);
    }
    return {};
}

Result<void> check_constants_size(const cachefmt::Graph& graph, std::uint64_t most)
{
    std::uint64_t bytes = 0; // cannot overflow, because the decoder limits the number and the sizes of constants
    for (const auto& region : graph.regions)
        if (region.kind == cachefmt::RegionKind::constant) bytes += region.size;
    if (bytes <= most) return {};
    return fail(ErrorCode::unsupported,
                "the entry's constants have {} bytes, expected at most {}: raise Spec::max_constant_bytes", bytes,
                most);
}

} // namespace warmgraph::replay
