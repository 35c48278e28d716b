// guards_digest and graph_digest. Canonical forms: docs/format.md, "Digests".
#include <algorithm>

#include "digest_put.hpp"
#include "identity.hpp"
#include "nodes/node_format.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {
namespace {

void put_numbers(Sha256& hash, const std::vector<std::int64_t>& numbers)
{
    put_count(hash, numbers.size());
    for (const std::int64_t number : numbers) put(hash, number);
}

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
        put_numbers(hash, tensor.sizes);
        put_numbers(hash, tensor.strides);
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

/// The count's highest bit says whether slots follow each variable.
void put_variables(Sha256& hash, const std::vector<ModuleVariable>& variables)
{
    constexpr std::uint64_t k_with_slots = 1ULL << 63U;
    const bool has_slots = std::ranges::any_of(variables, [](const auto& variable) { return !variable.slots.empty(); });
    put_count(hash, variables.size() | (has_slots ? k_with_slots : 0));
    for (const ModuleVariable& variable : variables) {
        put(hash, variable.name);
        put(hash, variable.contents);
        if (!has_slots) continue;
        put(hash, variable.slots);
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
        // The upper bit says that two more numbers follow. Graphs without them keep their digests.
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
        // The digest stays unambiguous: only a constant that is stored elsewhere has empty contents and a size above 0.
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
        format_of(node).digest(hash, node);
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
