#include "patch_table.hpp"

#include <cstring>

#include "nodes.hpp"

namespace warmgraph::replay {

PatchTable make_patch_table(const cachefmt::Graph& graph)
{
    PatchTable table;
    table.by_region.resize(graph.regions.size());
    table.by_scalar.resize(graph.scalars.size());
    for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
        for_each_slot(graph.nodes[node], [&](const backends::NodePlace& place, const cachefmt::Slot& slot) {
            auto& sites = slot.kind == cachefmt::SlotKind::region ? table.by_region : table.by_scalar;
            sites[slot.target].push_back({node, place, slot});
        });
    return table;
}

void patch_region(backends::RawNode& node, const Site& site, const Address& region) noexcept
{
    const Address address{region.base, region.offset + static_cast<std::uint64_t>(site.slot.addend)};
    const auto content = backends::content_at(node.work, site.place);
    if (content.address != nullptr) {
        *content.address = address;
    } else if (content.bytes != nullptr) {
        // A pointer inside a by-value parameter; only backends with flat addresses have such pointers.
        const std::uint64_t flat = address.flat();
        std::memcpy(content.bytes->data() + site.slot.offset, &flat, sizeof flat);
    }
}

void patch_scalar(backends::RawNode& node, const Site& site, std::uint64_t bits) noexcept
{
    // Two's complement: adding in 64 bits and keeping the low bytes equals native arithmetic of every integer width.
    const std::uint64_t value = bits + static_cast<std::uint64_t>(site.slot.addend);
    const auto content = backends::content_at(node.work, site.place);
    if (content.bytes != nullptr)
        std::memcpy(content.bytes->data() + site.slot.offset, &value, site.slot.width);
    else if (content.number != nullptr)
        std::memcpy(content.number, &value, site.slot.width);
}

} // namespace warmgraph::replay
