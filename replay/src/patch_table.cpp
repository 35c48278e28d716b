#include "patch_table.hpp"

#include <cstring>

namespace warmgraph::replay {

namespace {

void add(PatchTable& table, Site site)
{
    auto& sites = site.slot.kind == cachefmt::SlotKind::region ? table.by_region : table.by_scalar;
    sites[site.slot.target].push_back(site);
}

void add_node(PatchTable& table, std::uint32_t index, const cachefmt::Node& node)
{
    if (const auto* kernel = std::get_if<cachefmt::KernelNode>(&node)) {
        for (std::uint32_t p = 0; p < kernel->params.size(); ++p)
            for (const auto& slot : kernel->params[p].slots) add(table, {index, Place::parameter, p, slot});
        for (std::uint32_t a = 0; a < kernel->attributes.size(); ++a)
            for (const auto& slot : kernel->attributes[a].slots) add(table, {index, Place::attribute, a, slot});
    } else if (const auto* copy = std::get_if<cachefmt::CopyNode>(&node)) {
        add(table, {index, Place::source, 0, copy->source});
        add(table, {index, Place::destination, 0, copy->destination});
    } else if (const auto* fill = std::get_if<cachefmt::FillNode>(&node)) {
        add(table, {index, Place::destination, 0, fill->destination});
    } else if (const auto* batch = std::get_if<cachefmt::MemoryOperationsNode>(&node)) {
        for (std::uint32_t i = 0; i < batch->operations.size(); ++i)
            if (cachefmt::width_of(batch->operations[i].kind) != 0) // a barrier has no address
                add(table, {index, Place::operation, i, batch->operations[i].address});
    } else if (const auto* semaphores = std::get_if<cachefmt::SemaphoresNode>(&node)) {
        for (std::uint32_t i = 0; i < semaphores->uses.size(); ++i)
            if (const auto& slot = semaphores->uses[i].slot) add(table, {index, Place::semaphore, i, *slot});
    }
}

/// The bytes that hold a slot: a parameter's value or an attribute's.
Bytes& bytes_at(backends::RawKernel& kernel, const Site& site) noexcept
{
    return site.place == Place::attribute ? kernel.attributes[site.index].value : kernel.params[site.index].value;
}

} // namespace

PatchTable make_patch_table(const cachefmt::Graph& graph)
{
    PatchTable table;
    table.by_region.resize(graph.regions.size());
    table.by_scalar.resize(graph.scalars.size());
    for (std::uint32_t index = 0; index < graph.nodes.size(); ++index) add_node(table, index, graph.nodes[index]);
    return table;
}

void patch_region(backends::RawNode& node, const Site& site, const Address& region) noexcept
{
    const Address address{region.base, region.offset + static_cast<std::uint64_t>(site.slot.addend)};
    if (auto* kernel = std::get_if<backends::RawKernel>(&node.work)) {
        if (site.place == Place::parameter && kernel->params[site.index].kind == cachefmt::ParamKind::memory) {
            kernel->params[site.index].address = address;
        } else {
            // A pointer inside a by-value parameter: only backends with flat addresses have those.
            const std::uint64_t flat = address.flat();
            std::memcpy(bytes_at(*kernel, site).data() + site.slot.offset, &flat, sizeof flat);
        }
    } else if (auto* copy = std::get_if<backends::RawCopy>(&node.work)) {
        (site.place == Place::source ? copy->source : copy->destination) = address;
    } else if (auto* fill = std::get_if<backends::RawFill>(&node.work)) {
        fill->destination = address;
    } else if (auto* batch = std::get_if<backends::RawMemoryOperations>(&node.work)) {
        batch->operations[site.index].address = address;
    }
}

void patch_scalar(backends::RawNode& node, const Site& site, std::uint64_t bits) noexcept
{
    // Two's complement: adding in 64 bits and keeping the low bytes is the native arithmetic of every integer width.
    const std::uint64_t value = bits + static_cast<std::uint64_t>(site.slot.addend);
    if (auto* kernel = std::get_if<backends::RawKernel>(&node.work))
        std::memcpy(bytes_at(*kernel, site).data() + site.slot.offset, &value, site.slot.width);
    else if (auto* semaphores = std::get_if<backends::RawSemaphores>(&node.work)) // not in a rehearsal
        std::memcpy(&semaphores->uses[site.index].value, &value, site.slot.width);
}

} // namespace warmgraph::replay
