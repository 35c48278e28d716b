#include <limits>
#include <utility>

#include "slots.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

Graph without_scratch(Graph graph)
{
    constexpr std::uint32_t k_scratch = std::numeric_limits<std::uint32_t>::max(); // larger than any region's index
    std::vector<std::uint32_t> numbers;
    std::vector<Region> kept;
    for (Region& region : graph.regions) {
        const bool is_scratch = region.kind == RegionKind::arena;
        numbers.push_back(is_scratch ? k_scratch : static_cast<std::uint32_t>(kept.size()));
        if (is_scratch) continue;
        if (region.inside) { // the region's name contains its place in the scratch memory: drop it
            region.name.clear();
            region.inside = k_scratch;
            region.inside_offset = 0;
        }
        kept.push_back(std::move(region));
    }
    graph.regions = std::move(kept);
    const auto renumber = [&numbers](Slot& slot) {
        if (slot.kind != SlotKind::region || slot.target >= numbers.size()) return;
        slot.target = numbers[slot.target];
        if (slot.target == k_scratch) slot.addend = 0;
    };
    for (Node& node : graph.nodes) for_each_slot(node, renumber);
    for (ImageRef& image : graph.images)
        for (ModuleVariable& variable : image.variables)
            for (Slot& slot : variable.slots) renumber(slot);
    return graph;
}

} // namespace warmgraph::cachefmt
