#include "report/variant_json.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "entry_file.hpp"
#include "report/drawing.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::tool {

namespace {

using cachefmt::RegionKind;

/// The lines in a box: for one node its own lines; for several nodes the count of each name.
std::vector<std::string> lines_of(const Box& box, const cachefmt::Graph& graph)
{
    if (box.nodes.size() == 1) return cachefmt::to_text(graph.nodes[box.nodes.front()], graph).lines;
    std::vector<std::string> lines{plural(box.nodes.size(), "node")};
    std::map<std::string, std::size_t> counts;
    for (const std::uint32_t node : box.nodes) {
        const auto text = cachefmt::to_text(graph.nodes[node], graph);
        ++counts[text.lines.empty() ? std::string(text.kind) : text.lines.front()];
    }
    for (const auto& [name, count] : counts) lines.push_back(fmt::format("{} x {}", count, name));
    return lines;
}

Json to_json(const Box& box, const cachefmt::Graph& graph)
{
    const bool is_one = box.nodes.size() == 1;
    return {{"kind", is_one ? Json(cachefmt::to_text(graph.nodes[box.nodes.front()], graph).kind) : Json("several")},
            {"lines", lines_of(box, graph)},
            {"first_node", box.nodes.front()},
            {"nodes", box.nodes.size()},
            {"layer", box.layer},
            {"place", box.place}};
}

Json to_json(const Drawing& drawing, const cachefmt::Graph& graph)
{
    Json boxes = Json::array();
    for (const Box& box : drawing.boxes) boxes.push_back(to_json(box, graph));
    Json edges = Json::array();
    for (const auto& [from, to] : drawing.edges) edges.push_back({from, to});
    return {{"boxes", boxes}, {"edges", edges}, {"left_out", drawing.left_out}};
}

/// Counts nodes by kernel name, or by kind; the most frequent first.
Json work_of(const cachefmt::Graph& graph)
{
    std::map<std::string, std::size_t> counts;
    for (const cachefmt::Node& node : graph.nodes) {
        const auto text = cachefmt::to_text(node, graph);
        ++counts[text.lines.empty() ? std::string(text.kind) : text.lines.front()];
    }
    std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
    std::ranges::stable_sort(sorted, std::ranges::greater{}, &std::pair<std::string, std::size_t>::second);
    Json out = Json::array();
    for (const auto& [name, count] : sorted) out.push_back({{"name", name}, {"nodes", count}});
    return out;
}

Json memory_of(const cachefmt::Graph& graph)
{
    static constexpr std::array<std::pair<RegionKind, const char*>, 6> kinds{{{RegionKind::input, "input"},
                                                                              {RegionKind::output, "output"},
                                                                              {RegionKind::state, "state"},
                                                                              {RegionKind::weights, "weights"},
                                                                              {RegionKind::arena, "arena"},
                                                                              {RegionKind::constant, "constant"}}};
    Json out = Json::object();
    for (const auto& [kind, name] : kinds) {
        std::uint64_t bytes = 0;
        for (const cachefmt::Region& region : graph.regions) bytes += region.kind == kind ? region.size : 0;
        out[name] = bytes;
    }
    return out;
}

/// The values that change between calls: inputs, outputs and scalars. Weights are left out because they are too many.
Json signature_of(const cachefmt::Entry& entry)
{
    Json out = Json::array();
    for (const cachefmt::TensorSpec& tensor : entry.header.guards.tensors)
        for (const cachefmt::Region& region : entry.graph.regions)
            if (region.name == tensor.name && (region.kind == RegionKind::input || region.kind == RegionKind::output))
                out.push_back({{"name", tensor.name},
                               {"use", region.kind == RegionKind::input ? "input" : "output"},
                               {"type", cachefmt::to_text(tensor, entry.header.guards)}});
    for (const cachefmt::Scalar& scalar : entry.graph.scalars)
        out.push_back({{"name", scalar.name}, {"use", "scalar"}, {"type", to_string(scalar.type)}});
    return out;
}

Json code_of(const cachefmt::Graph& graph)
{
    Json out = Json::array();
    for (const cachefmt::ImageRef& image : graph.images)
        out.push_back({{"label", image.label}, {"digest", to_hex(image.digest)}, {"bytes", image.size}});
    return out;
}

Json header_json(const store::Variant& variant)
{
    Json out{{"variant", to_hex(variant.guards_digest)},
             {"bytes", variant.size},
             {"last_used", to_iso8601(variant.last_used)},
             {"kind", "damaged"},
             {"error", nullptr}};
    if (!variant.header) {
        out["error"] = variant.header.error().message;
        return out;
    }
    const cachefmt::EntryInfo& info = variant.header->info;
    out["kind"] = variant.header->kind == cachefmt::EntryKind::graph ? "graph" : "recompiled";
    out.update({{"created", info.created},
                {"created_by", info.created_by},
                {"answer_ms", info.answer_ms},
                {"record_ms", info.record_ms},
                {"verification", info.verification},
                {"nodes", info.node_count},
                {"images", info.image_count},
                {"scalar_proofs", info.scalar_proofs},
                {"reason", info.reason},
                {"difference", info.difference}});
    return out;
}

} // namespace

Json VariantJson::graph_json(const cachefmt::Graph& graph)
{
    Json out{{"edges", graph.edges.size()}, {"work", work_of(graph)}, {"drawing", nullptr}};
    if (m_drawn >= m_limits.boxes_in_all) return out;
    const Drawing drawing = draw(graph, m_limits.boxes_a_graph);
    m_drawn += drawing.boxes.size();
    out["drawing"] = to_json(drawing, graph);
    return out;
}

Json VariantJson::json(const cachefmt::FunctionKey& function, const store::Variant& variant)
{
    Json out = header_json(variant);
    out["graph"] = nullptr;
    if (!variant.header || variant.header->kind != cachefmt::EntryKind::graph) return out;
    const cachefmt::EntryKey key{function, variant.guards_digest};
    const auto entry = read_entry(m_context, path_of(m_root, key), key);
    if (!entry) {
        out["kind"] = "damaged";
        out["error"] = entry.error().message;
        return out;
    }
    out["signature"] = signature_of(*entry);
    out["memory"] = memory_of(entry->graph);
    out["code"] = code_of(entry->graph);
    out["graph"] = graph_json(entry->graph);
    return out;
}

} // namespace warmgraph::tool
