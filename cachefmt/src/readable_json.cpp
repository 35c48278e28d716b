// The JSON form of `warmgraph show --json`. Its keys are documented in docs/format.md.
#include <nlohmann/json.hpp>

#include "describe.hpp"
#include "nodes/node_format.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/fact_lists.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt {
namespace {

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
    return {{"name", fact.name},
            {"value", known ? Json(fact.value) : Json(nullptr)},
            {"role", to_string(fact.role)},
            {"compared", compared_text(fact)}};
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

/// A number or a truth value; a text for values that JSON cannot express (infinities, half precision).
Json number_of(const ValueSpec& value)
{
    const std::string text = value_text(value);
    Json number = Json::parse(text, nullptr, false);
    return number.is_discarded() ? Json(text) : number;
}

Json to_json(const ValueSpec& value)
{
    return {{"name", value.name},
            {"dtype", warmgraph::to_string(value.dtype)},
            {"bits", value.bits},
            {"value", number_of(value)}};
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

Json to_json(const Node& node, const Graph& graph)
{
    Json out{{"kind", node_kind(node)}};
    format_of(node).json(out, node, graph);
    return out;
}

/// Lists the edges that have properties.
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

/// The digest covers the whole graph, whatever sections are shown.
Json to_json(const Graph& graph, const Sections& only)
{
    const auto is_wanted = [&](Section section) { return only.empty() || only.contains(section); };
    Json out{{"digest", to_hex(graph_digest(graph))}};
    if (is_wanted(Section::bindings)) {
        out["regions"] = list(graph.regions, [](const Region& region) { return to_json(region); });
        out["scalars"] = list(graph.scalars, [](const Scalar& item) {
            return Json{{"name", item.name}, {"type", warmgraph::to_string(item.type)}};
        });
        out["events"] = graph.events;
        out["semaphores"] = graph.semaphores;
    }
    if (is_wanted(Section::images))
        out["images"] = list(graph.images, [](const ImageRef& image) { return to_json(image); });
    if (is_wanted(Section::nodes)) {
        out["nodes"] = list(graph.nodes, [&](const Node& node) { return to_json(node, graph); });
        out["edges"] = list(graph.edges, [](const Edge& edge) { return Json::array({edge.from, edge.to}); });
        out["edge_data"] = edge_data_json(graph);
    }
    return out;
}

Json to_json(const CompiledWithin& program)
{
    return {{"program", to_hex(program.program)}, {"ms", program.ms}, {"at_launch", program.at_launch}};
}

Json to_json(const EntryInfo& info)
{
    return {{"created", info.created},
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
            {"compiled", list(info.compiled, [](const CompiledWithin& program) { return to_json(program); })},
            {"reason", info.reason},
            {"difference", info.difference}};
}

Json to_json(const Guards& guards)
{
    return {{"facts", list(each_fact(guards.facts), [](const Fact& fact) { return to_json(fact); })},
            {"tensors", list(guards.tensors, [](const TensorSpec& tensor) { return to_json(tensor); })},
            {"values", list(guards.values, [](const ValueSpec& value) { return to_json(value); })}};
}

} // namespace

std::string to_json(const Entry& entry, const Sections& only)
{
    const EntryHeader& header = entry.header;
    const auto is_wanted = [&](Section section) { return only.empty() || only.contains(section); };
    const bool of_graph =
        only.empty() || is_wanted(Section::bindings) || is_wanted(Section::images) || is_wanted(Section::nodes);
    Json out{{"format", k_format_version},
             {"kind", to_string(header.kind)},
             {"key",
              {{"model_info", header.key.function.model_info},
               {"rank", header.key.function.rank},
               {"function", header.key.function.function},
               {"guards", to_hex(header.key.guards_digest)}}}};
    if (is_wanted(Section::header)) out["info"] = to_json(header.info);
    if (is_wanted(Section::header))
        out["recording"] = header.recording
                               ? Json{{"id", to_hex(header.recording->id)}, {"part", to_string(header.recording->part)}}
                               : Json(nullptr);
    if (is_wanted(Section::guards)) out["guards"] = to_json(header.guards);
    if (of_graph) out["graph"] = header.kind == EntryKind::graph ? to_json(entry.graph, only) : Json(nullptr);
    // Stored names may be invalid UTF-8: U+FFFD replaces the invalid bytes.
    return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace warmgraph::cachefmt
