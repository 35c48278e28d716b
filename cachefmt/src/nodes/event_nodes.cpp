// Nodes that record events, and nodes that wait for them.
#include "describe.hpp"
#include "digest_put.hpp"
#include "nodes/node_format_of.hpp"

namespace warmgraph::cachefmt {
namespace {

/// The event's name; "event 7" if the index is out of range.
std::string event_text(std::uint32_t event, const Graph& graph)
{
    return event < graph.events.size() ? printable(graph.events[event]) : fmt::format("event {}", event);
}

template <class EventNode, class Table>
struct EventFormat : FixedSize {
    using Work = EventNode;
    using Flat = Table;

    static void digest(Sha256& hash, const Work& node) { put(hash, node.event); }
    static void compare(const NodeDifference& out, const Work& a, const Work& b)
    {
        if (a.event != b.event) out.line("", event_text(a.event, out.recorded()), event_text(b.event, out.now()));
    }
    static Result<void> validate(const Work& node, const Graph& graph, const Limits&)
    {
        if (node.event >= graph.events.size())
            return fail(ErrorCode::corrupt, "event {} is out of range, the graph has {}", node.event,
                        graph.events.size());
        return {};
    }
    static Work from_flat(const Flat& flat) { return {flat.event()}; }
    static void json(Json& out, const Work& node, const Graph& graph)
    {
        set_number(out, "event", node.event);
        set_name(out, "name", graph.events, node.event);
    }
    static NodeRow row(const Work& node, const Graph& graph) { return {.parameters = event_text(node.event, graph)}; }
};

struct EventRecordFormat : EventFormat<EventRecordNode, flat::EventRecord> {
    static std::string_view kind(const Work&) noexcept { return "event record"; }
    static auto to_flat(FlatBuilder& builder, const Work& node) { return flat::CreateEventRecord(builder, node.event); }
    static std::vector<std::string> label(const Work& node, const Graph& graph)
    {
        return {"event record", event_text(node.event, graph)};
    }
};

struct EventWaitFormat : EventFormat<EventWaitNode, flat::EventWait> {
    static std::string_view kind(const Work&) noexcept { return "event wait"; }
    static auto to_flat(FlatBuilder& builder, const Work& node) { return flat::CreateEventWait(builder, node.event); }
    static std::vector<std::string> label(const Work& node, const Graph& graph)
    {
        return {"event wait", event_text(node.event, graph)};
    }
};

} // namespace

const NodeFormat& format_of(std::type_identity<EventRecordNode>) noexcept
{
    static const NodeFormatOf<EventRecordFormat> format;
    return format;
}

const NodeFormat& format_of(std::type_identity<EventWaitNode>) noexcept
{
    static const NodeFormatOf<EventWaitFormat> format;
    return format;
}

} // namespace warmgraph::cachefmt
