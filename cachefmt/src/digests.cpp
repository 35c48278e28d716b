// guards_digest and graph_digest. Canonical forms: docs/format.md, "Digests". Every variable part is preceded by its
// length or count, so that no two contents give the same bytes.
#include <algorithm>

#include "identity.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {
namespace {

template <class T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
void put(Sha256& hash, T value)
{
    hash.update(std::as_bytes(std::span{&value, 1}));
}

void put_count(Sha256& hash, std::size_t count) { put(hash, static_cast<std::uint64_t>(count)); }

void put(Sha256& hash, const std::string& text) { hash.update_field(std::string_view{text}); }
void put(Sha256& hash, const Bytes& bytes) { hash.update_field(ByteView{bytes}); }

void put(Sha256& hash, const std::vector<std::int64_t>& numbers)
{
    put_count(hash, numbers.size());
    for (const std::int64_t number : numbers) put(hash, number);
}

void put(Sha256& hash, const Slot& slot)
{
    put(hash, slot.kind);
    put(hash, slot.target);
    put(hash, slot.offset);
    put(hash, slot.width);
    put(hash, slot.addend);
}

void put(Sha256& hash, const Param& param)
{
    put(hash, param.kind);
    put(hash, canonical_value(param));
    put(hash, param.local_size);
    put_count(hash, param.slots.size());
    for (const Slot& slot : param.slots) put(hash, slot);
}

void put(Sha256& hash, const Attribute& attribute)
{
    put(hash, attribute.id);
    put(hash, canonical_value(attribute));
    put_count(hash, attribute.slots.size());
    for (const Slot& slot : attribute.slots) put(hash, slot);
}

void put(Sha256& hash, const Pitch& pitch)
{
    put(hash, pitch.row);
    put(hash, pitch.slice);
}

struct PutNode {
    Sha256& hash;

    void operator()(const EmptyNode&) const {}
    void operator()(const KernelNode& kernel) const
    {
        put(hash, kernel.image);
        put(hash, kernel.kernel);
        for (const std::uint32_t extent : kernel.grid) put(hash, extent);
        for (const std::uint32_t extent : kernel.block) put(hash, extent);
        put_count(hash, kernel.params.size());
        for (const Param& param : kernel.params) put(hash, param);
        put(hash, kernel.shared_bytes);
        put(hash, static_cast<std::uint8_t>(kernel.packed));
        put_count(hash, kernel.attributes.size());
        for (const Attribute& attribute : kernel.attributes) put(hash, attribute);
        put_count(hash, kernel.function_attributes.size());
        for (const FunctionAttribute& attribute : kernel.function_attributes) {
            put(hash, attribute.id);
            put(hash, attribute.value);
        }
    }
    void operator()(const CopyNode& copy) const
    {
        put(hash, copy.source);
        put(hash, copy.destination);
        put(hash, copy.size);
        put(hash, copy.rows);
        put(hash, copy.slices);
        put(hash, copy.source_pitch);
        put(hash, copy.destination_pitch);
        put(hash, copy.source_space);
        put(hash, copy.destination_space);
    }
    void operator()(const FillNode& fill) const
    {
        put(hash, fill.destination);
        put(hash, fill.pattern);
        put(hash, fill.size);
        put(hash, fill.rows);
        put(hash, fill.pitch);
    }
    void operator()(const EventRecordNode& record) const { put(hash, record.event); }
    void operator()(const EventWaitNode& wait) const { put(hash, wait.event); }
    void operator()(const HostNode& host) const { put(hash, host.function); }
    void operator()(const MemoryOperationsNode& node) const
    {
        put_count(hash, node.operations.size());
        for (const MemoryOperation& operation : node.operations) {
            put(hash, operation.kind);
            put(hash, operation.address);
            put(hash, operation.value);
            put(hash, operation.flags);
        }
    }
    void operator()(const SemaphoresNode& node) const
    {
        put(hash, node.action);
        put_count(hash, node.uses.size());
        for (const SemaphoreUse& use : node.uses) {
            put(hash, use.semaphore);
            put(hash, canonical_value(use));
            put_count(hash, use.slot ? 1 : 0);
            if (use.slot) put(hash, *use.slot);
            put(hash, use.flags);
        }
    }
};

} // namespace

Digest guards_digest(const Guards& guards)
{
    Sha256 hash;
    hash.update_field(std::string_view{"warmgraph guards 2"});
    std::size_t facts = 0;
    for (const Fact& fact : guards.facts) facts += fact.role == Role::must_match ? 1 : 0;
    put_count(hash, facts);
    for (const Fact& fact : guards.facts) {
        if (fact.role != Role::must_match) continue;
        put(hash, fact.name);
        put(hash, fact.value);
    }
    put_count(hash, guards.tensors.size());
    for (const TensorSpec& tensor : guards.tensors) {
        put(hash, tensor.name);
        put(hash, tensor.dtype);
        put(hash, tensor.sizes);
        put(hash, tensor.strides);
        put(hash, tensor.device);
        put(hash, tensor.alignment);
        put(hash, tensor.alias_group);
        put(hash, static_cast<std::uint8_t>(tensor.distance.has_value()));
        put(hash, tensor.distance.value_or(0));
    }
    put_count(hash, guards.values.size());
    for (const ValueSpec& value : guards.values) {
        put(hash, value.name);
        put(hash, value.dtype);
        put(hash, value.bits);
    }
    return hash.finish();
}

namespace {

/// The count's highest bit says whether slots come with the variables.
void put_variables(Sha256& hash, const std::vector<ModuleVariable>& variables)
{
    constexpr std::uint64_t k_with_slots = 1ULL << 63U;
    const bool has_slots = std::ranges::any_of(variables, [](const auto& variable) { return !variable.slots.empty(); });
    put_count(hash, variables.size() | (has_slots ? k_with_slots : 0));
    for (const ModuleVariable& variable : variables) {
        put(hash, variable.name);
        put(hash, variable.contents);
        if (!has_slots) continue;
        put_count(hash, variable.slots.size());
        for (const Slot& slot : variable.slots) put(hash, slot);
    }
}

} // namespace

Digest graph_digest(const Graph& graph)
{
    Sha256 hash;
    hash.update_field(std::string_view{"warmgraph graph 3"});
    put_count(hash, graph.regions.size());
    for (const Region& region : graph.regions) {
        put(hash, region.name);
        // The upper bit tells that two more numbers follow; graphs without them keep their digests.
        constexpr std::uint8_t k_inside = 0x80;
        put(hash, static_cast<std::uint8_t>(static_cast<std::uint8_t>(region.kind) | (region.inside ? k_inside : 0U)));
        if (region.inside) {
            put(hash, *region.inside);
            put(hash, region.inside_offset);
        }
        put(hash, region.size);
        put(hash, region.alignment);
        put(hash, region.contents);
        put(hash, region.space);
        // Only where there are no contents though it has a size: that tells it from others.
        if (region.digest != Digest{}) hash.update(ByteView{region.digest.bytes});
    }
    put_count(hash, graph.scalars.size());
    for (const Scalar& scalar : graph.scalars) {
        put(hash, scalar.name);
        put(hash, scalar.type);
    }
    put_count(hash, graph.images.size());
    for (const ImageRef& image : graph.images) {
        hash.update(ByteView{identity_of(image).bytes});
        put_variables(hash, image.variables);
    }
    put_count(hash, graph.events.size());
    for (const std::string& event : graph.events) put(hash, event);
    put_count(hash, graph.semaphores.size());
    for (const std::string& semaphore : graph.semaphores) put(hash, semaphore);
    put_count(hash, graph.nodes.size());
    for (const Node& node : graph.nodes) {
        put(hash, static_cast<std::uint8_t>(node.index()));
        std::visit(PutNode{hash}, node);
    }
    put_count(hash, graph.edges.size());
    for (const Edge& edge : graph.edges) {
        put(hash, edge.from);
        put(hash, edge.to);
        put(hash, edge.data.from_port);
        put(hash, edge.data.to_port);
        put(hash, edge.data.type);
    }
    return hash.finish();
}

} // namespace warmgraph::cachefmt
