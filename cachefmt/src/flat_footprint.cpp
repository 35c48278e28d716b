#include "flat_footprint.hpp"

#include "check_count.hpp"
#include "flat_parse.hpp"
#include "footprint.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
namespace {

std::uint64_t image_footprint(const flat::Image& image)
{
    std::uint64_t bytes = sizeof(ImageRef) + count(image.label());
    for (std::uint32_t i = 0; i < count(image.variables()); ++i) {
        const flat::Variable& variable = *image.variables()->Get(i);
        bytes += sizeof(ModuleVariable) + count(variable.name()) + count(variable.contents()) +
                 count(variable.slots()) * sizeof(Slot);
    }
    return bytes;
}

/// Records name an edge each, ascending. A record that says nothing would give equal graphs unequal bytes.
Result<void> check_edge_data(const flat::Payload& payload)
{
    for (std::uint32_t i = 0; i < count(payload.edge_data()); ++i) {
        const flat::EdgeData& record = *payload.edge_data()->Get(i);
        if (record.edge() >= count(payload.edges()))
            return fail(ErrorCode::corrupt, "edge data {}: edge {} is out of range, the graph has {}", i, record.edge(),
                        count(payload.edges()));
        if (i > 0 && payload.edge_data()->Get(i - 1)->edge() >= record.edge())
            return fail(ErrorCode::corrupt, "edge data {}: edge {} is repeated or out of order", i, record.edge());
        if (record.from_port() == 0 && record.to_port() == 0 && record.type() == 0)
            return fail(ErrorCode::corrupt, "edge data {}: it says nothing about edge {}", i, record.edge());
    }
    return {};
}

Result<void> check_node(const flat::Node& node, std::uint64_t index, const Limits& limits)
{
    if (node.work_type() > flat::Work::MAX)
        return fail(ErrorCode::corrupt, "node {}: kind {} is unknown", index, static_cast<int>(node.work_type()));
    if (node.work_type() == flat::Work::NONE) return {};
    if (node.work() == nullptr)
        return fail(ErrorCode::corrupt, "node {}: its {} is missing", index, flat::EnumNameWork(node.work_type()));
    if (auto ok = format_of(node).check_flat(node, limits); !ok)
        return within(fmt::format("node {}", index), std::move(ok.error()));
    return {};
}

} // namespace

Result<void> check_counts(const flat::Payload& payload, const Limits& limits)
{
    if (auto ok = check_count("regions", count(payload.regions()), limits.regions); !ok) return ok;
    if (auto ok = check_count("scalars", count(payload.scalars()), limits.scalars); !ok) return ok;
    if (auto ok = check_count("images", count(payload.images()), limits.images); !ok) return ok;
    if (auto ok = check_count("nodes", count(payload.nodes()), limits.nodes); !ok) return ok;
    if (auto ok = check_count("edges", count(payload.edges()), limits.edges); !ok) return ok;
    if (auto ok = check_count("events", count(payload.events()), limits.events); !ok) return ok;
    if (auto ok = check_count("semaphores", count(payload.semaphores()), limits.semaphores); !ok) return ok;
    if (auto ok = check_edge_data(payload); !ok) return ok;
    for (std::uint32_t i = 0; i < count(payload.nodes()); ++i)
        if (auto ok = check_node(*payload.nodes()->Get(i), i, limits); !ok) return ok;
    return {};
}

std::uint64_t flat_footprint(const flat::Header& header)
{
    const flat::Info& info = *header.info();
    std::uint64_t bytes = count(header.model_info()) + count(header.rank()) + count(header.function()) +
                          count(info.created()) + count(info.created_by()) + count(info.verification()) +
                          count(info.reason());
    for (const auto* lines : {info.difference(), info.scalar_proofs()})
        for (std::uint32_t i = 0; i < count(lines); ++i) bytes += sizeof(std::string) + count(lines->Get(i));
    for (std::uint32_t i = 0; i < count(header.facts()); ++i)
        bytes += sizeof(Fact) + count(header.facts()->Get(i)->name()) + count(header.facts()->Get(i)->value());
    for (std::uint32_t i = 0; i < count(header.tensors()); ++i) {
        const flat::TensorSpec& tensor = *header.tensors()->Get(i);
        bytes += sizeof(TensorSpec) + count(tensor.name()) + count(tensor.device()) +
                 (count(tensor.sizes()) + count(tensor.strides())) * sizeof(std::int64_t);
    }
    for (std::uint32_t i = 0; i < count(header.values()); ++i)
        bytes += sizeof(ValueSpec) + count(header.values()->Get(i)->name());
    return bytes;
}

std::uint64_t flat_footprint(const flat::Payload& payload)
{
    std::uint64_t bytes = count(payload.edges()) * sizeof(Edge);
    for (std::uint32_t i = 0; i < count(payload.regions()); ++i) {
        const flat::Region& region = *payload.regions()->Get(i);
        bytes += sizeof(Region) + count(region.name()) + count(region.contents());
    }
    for (std::uint32_t i = 0; i < count(payload.scalars()); ++i)
        bytes += sizeof(Scalar) + count(payload.scalars()->Get(i)->name());
    for (std::uint32_t i = 0; i < count(payload.images()); ++i) bytes += image_footprint(*payload.images()->Get(i));
    for (std::uint32_t i = 0; i < count(payload.events()); ++i)
        bytes += sizeof(std::string) + count(payload.events()->Get(i));
    for (std::uint32_t i = 0; i < count(payload.semaphores()); ++i)
        bytes += sizeof(std::string) + count(payload.semaphores()->Get(i));
    for (std::uint32_t i = 0; i < count(payload.nodes()); ++i) {
        const flat::Node& node = *payload.nodes()->Get(i);
        bytes += sizeof(Node) + format_of(node).flat_footprint(node);
    }
    return bytes;
}

} // namespace warmgraph::cachefmt
