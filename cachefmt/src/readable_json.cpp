// The JSON form of `warmgraph show --json`. Its keys are documented in docs/format.md.
#include <nlohmann/json.hpp>

#include "cuda_names.hpp"
#include "describe.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt {
namespace {

using Json = nlohmann::ordered_json;

template <class Range, class Convert>
Json list(const Range& range, Convert convert)
{
    Json out = Json::array();
    for (const auto& item : range) out.push_back(convert(item));
    return out;
}

Json to_json(const Fact& fact)
{
    const bool known = fact.value != k_unknown;
    return {{"name", fact.name}, {"value", known ? Json(fact.value) : Json(nullptr)}, {"role", to_string(fact.role)}};
}

Json to_json(const TensorSpec& tensor)
{
    return {{"name", tensor.name},
            {"dtype", warmgraph::to_string(tensor.dtype)},
            {"sizes", tensor.sizes},
            {"strides", tensor.strides},
            {"device", tensor.device},
            {"alignment", tensor.alignment},
            {"alias_group", tensor.alias_group},
            {"distance", tensor.distance ? Json(*tensor.distance) : Json(nullptr)}};
}

Json to_json(const ValueSpec& value)
{
    return {{"name", value.name},
            {"dtype", warmgraph::to_string(value.dtype)},
            {"bits", value.bits},
            {"value", value_text(value)}};
}

Json to_json(const Region& region)
{
    return {{"name", region.name},
            {"kind", to_string(region.kind)},
            {"size", region.size},
            {"alignment", region.alignment},
            {"space", to_string(region.space)},
            {"digest", region.digest == Digest{} ? Json(nullptr) : Json(to_hex(region.digest))},
            {"exclusive", region.exclusive},
            {"inside", region.inside ? Json(*region.inside) : Json(nullptr)},
            {"inside_offset", region.inside_offset}};
}

Json to_json(const ImageRef& image)
{
    return {{"label", image.label},
            {"size", image.size},
            {"digest", to_hex(image.digest)},
            {"origin", image.origin == Digest{} ? Json(nullptr) : Json(to_hex(image.origin))},
            {"variables", list(image.variables, [](const ModuleVariable& variable) {
                 return Json{
                     {"name", variable.name}, {"size", variable.contents.size()}, {"addresses", variable.slots.size()}};
             })}};
}

Json to_json(const Slot& slot, const Graph& graph)
{
    return {{"kind", slot.kind == SlotKind::region ? "region" : "scalar"},
            {"target", slot.target},
            {"offset", slot.offset},
            {"width", slot.width},
            {"addend", slot.addend},
            {"text", to_text(slot, graph)}};
}

Json to_json(const Param& param, const Graph& graph)
{
    Json out{{"kind", to_string(param.kind)}};
    if (param.kind == ParamKind::value) out["value"] = hex(param.value, param.value.size());
    if (param.kind == ParamKind::local) out["local_size"] = param.local_size;
    if (param.kind != ParamKind::local)
        out["slots"] = list(param.slots, [&](const Slot& slot) { return to_json(slot, graph); });
    return out;
}

Json to_json(const Attribute& attribute, const Graph& graph)
{
    return {{"id", attribute.id},
            {"name", launch_attribute_name(attribute.id)},
            {"value", hex(attribute.value, attribute.value.size())},
            {"slots", list(attribute.slots, [&](const Slot& slot) { return to_json(slot, graph); })},
            {"text", to_text(attribute, graph)}};
}

Json to_json(const FunctionAttribute& attribute)
{
    return {{"id", attribute.id}, {"name", function_attribute_name(attribute.id)}, {"value", attribute.value}};
}

Json to_json(const MemoryOperation& operation, const Graph& graph)
{
    const bool has_address = width_of(operation.kind) != 0;
    return {{"kind", to_string(operation.kind)},
            {"address", has_address ? to_json(operation.address, graph) : Json(nullptr)},
            {"value", operation.value},
            {"flags", operation.flags},
            {"text", to_text(operation, graph)}};
}

Json to_json(const SemaphoreUse& use, SemaphoreAction action, const Graph& graph)
{
    const bool known = use.semaphore < graph.semaphores.size();
    return {{"semaphore", use.semaphore}, {"name", known ? Json(graph.semaphores[use.semaphore]) : Json(nullptr)},
            {"value", use.value},         {"slot", use.slot ? to_json(*use.slot, graph) : Json(nullptr)},
            {"flags", use.flags},         {"text", to_text(use, action, graph)}};
}

Json to_json(const Pitch& pitch) { return {{"row", pitch.row}, {"slice", pitch.slice}}; }

/// Adds a node's own keys.
struct PutNode {
    Json& out;
    const Graph& graph;

    void operator()(const EmptyNode&) const {}
    void operator()(const KernelNode& kernel) const
    {
        out["kernel"] = kernel.kernel;
        out["image"] = kernel.image;
        out["grid"] = kernel.grid;
        out["block"] = kernel.block;
        out["params"] = list(kernel.params, [&](const Param& param) { return to_json(param, graph); });
        out["shared_bytes"] = kernel.shared_bytes;
        out["packed"] = kernel.packed;
        out["attributes"] = list(kernel.attributes, [&](const Attribute& item) { return to_json(item, graph); });
        out["function_attributes"] =
            list(kernel.function_attributes, [](const FunctionAttribute& item) { return to_json(item); });
    }
    void operator()(const CopyNode& copy) const
    {
        out["source"] = to_json(copy.source, graph);
        out["destination"] = to_json(copy.destination, graph);
        out["size"] = copy.size;
        out["rows"] = copy.rows;
        out["slices"] = copy.slices;
        out["source_pitch"] = to_json(copy.source_pitch);
        out["destination_pitch"] = to_json(copy.destination_pitch);
        out["source_space"] = to_string(copy.source_space);
        out["destination_space"] = to_string(copy.destination_space);
    }
    void operator()(const FillNode& fill) const
    {
        out["destination"] = to_json(fill.destination, graph);
        out["pattern"] = hex(fill.pattern, fill.pattern.size());
        out["size"] = fill.size;
        out["rows"] = fill.rows;
        out["pitch"] = fill.pitch;
    }
    void operator()(const EventRecordNode& record) const { event(record.event); }
    void operator()(const EventWaitNode& wait) const { event(wait.event); }
    void operator()(const HostNode& host) const { out["function"] = host.function; }
    void operator()(const MemoryOperationsNode& node) const
    {
        out["operations"] = list(node.operations, [&](const MemoryOperation& item) { return to_json(item, graph); });
    }
    void operator()(const SemaphoresNode& node) const
    {
        out["semaphores"] = list(node.uses, [&](const SemaphoreUse& use) { return to_json(use, node.action, graph); });
    }

private:
    void event(std::uint32_t index) const
    {
        out["event"] = index;
        out["name"] = index < graph.events.size() ? Json(graph.events[index]) : Json(nullptr);
    }
};

Json to_json(const Node& node, const Graph& graph)
{
    Json out{{"kind", node_kind(node)}};
    std::visit(PutNode{out, graph}, node);
    return out;
}

/// Of the edges that are more than an order.
Json edge_data_json(const Graph& graph)
{
    Json out = Json::array();
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
        const EdgeData& data = graph.edges[i].data;
        if (data == EdgeData{}) continue;
        out.push_back({{"edge", i},
                       {"from_port", data.from_port},
                       {"to_port", data.to_port},
                       {"type", data.type},
                       {"text", to_text(data)}});
    }
    return out;
}

Json to_json(const Graph& graph)
{
    const auto scalar = [](const Scalar& item) {
        return Json{{"name", item.name}, {"type", warmgraph::to_string(item.type)}};
    };
    return {{"digest", to_hex(graph_digest(graph))},
            {"regions", list(graph.regions, [](const Region& region) { return to_json(region); })},
            {"scalars", list(graph.scalars, scalar)},
            {"images", list(graph.images, [](const ImageRef& image) { return to_json(image); })},
            {"events", graph.events},
            {"semaphores", graph.semaphores},
            {"nodes", list(graph.nodes, [&](const Node& node) { return to_json(node, graph); })},
            {"edges", list(graph.edges, [](const Edge& edge) { return Json::array({edge.from, edge.to}); })},
            {"edge_data", edge_data_json(graph)}};
}

} // namespace

std::string to_json(const Entry& entry)
{
    const EntryHeader& header = entry.header;
    const EntryInfo& info = header.info;
    Json out{{"format", k_format_version},
             {"kind", to_string(header.kind)},
             {"key",
              {{"model_info", header.key.function.model_info},
               {"rank", header.key.function.rank},
               {"function", header.key.function.function},
               {"guards", to_hex(header.key.guards)}}},
             {"info",
              {{"created", info.created},
               {"created_by", info.created_by},
               {"record_ms", info.record_ms},
               {"answer_ms", info.answer_ms},
               {"verification", info.verification},
               {"node_count", info.node_count},
               {"image_count", info.image_count},
               {"unproven", info.unproven},
               {"scalar_proofs", info.scalar_proofs},
               {"library_constants", info.library_constants},
               {"unused_words", info.unused_words},
               {"reason", info.reason},
               {"difference", info.difference}}},
             {"guards",
              {{"facts", list(header.guards.facts, [](const Fact& fact) { return to_json(fact); })},
               {"tensors", list(header.guards.tensors, [](const TensorSpec& tensor) { return to_json(tensor); })},
               {"values", list(header.guards.values, [](const ValueSpec& value) { return to_json(value); })}}}};
    out["graph"] = header.kind == EntryKind::graph ? to_json(entry.graph) : Json(nullptr);
    // Stored names need not be UTF-8: U+FFFD stands for what is not.
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace warmgraph::cachefmt
