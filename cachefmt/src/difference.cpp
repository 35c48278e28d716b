// difference(): the parts of graph_digest(), compared as text for people. This file compares everything that
// digests.cpp hashes, and the files in nodes/ compare everything that is hashed of a node, so that every difference has
// a line.
#include <algorithm>
#include <map>
#include <utility>

#include "describe.hpp"
#include "difference_lines.hpp"
#include "identity.hpp"

namespace warmgraph::cachefmt {
namespace {

std::string region_name(const Region& region, std::size_t i)
{
    return fmt::format("region {} '{}'", i, printable(region.name));
}

/// The digest of contents that are stored elsewhere, as text.
std::string elsewhere(const Region& region)
{
    return region.digest == Digest{} ? "of its own" : fmt::format("stored as {}", short_hex(region.digest));
}

std::string inside(const Graph& graph, const Region& region)
{
    if (!region.inside) return "in its own memory";
    const std::size_t arena = *region.inside;
    const std::string name = arena < graph.regions.size() ? printable(graph.regions[arena].name) : "";
    return fmt::format("in region {} '{}' at byte {}", arena, name, region.inside_offset);
}

std::string scalar_name(const Scalar& scalar, std::size_t i)
{
    return fmt::format("scalar {} '{}'", i, printable(scalar.name));
}

std::string image_name(const ImageRef& image, std::size_t i)
{
    return fmt::format("image {} '{}'", i, printable(image.label));
}

std::string event_name(const std::string& event, std::size_t i)
{
    return fmt::format("event {} '{}'", i, printable(event));
}

std::string semaphore_name(const std::string& semaphore, std::size_t i)
{
    return fmt::format("semaphore {} '{}'", i, printable(semaphore));
}

std::string edge_name(const std::pair<std::uint32_t, std::uint32_t>& ends)
{
    return fmt::format("edge {} -> {}", ends.first, ends.second);
}

class GraphDifference {
public:
    GraphDifference(const Graph& recorded, const Graph& now, std::size_t limit)
        : m_recorded(recorded), m_now(now), m_lines(limit)
    {
    }

    std::vector<std::string> run() &&
    {
        compare_lists("region", m_recorded.regions, m_now.regions, [this](std::size_t i) { region(i); }, region_name);
        compare_lists("scalar", m_recorded.scalars, m_now.scalars, [this](std::size_t i) { scalar(i); }, scalar_name);
        compare_lists("image", m_recorded.images, m_now.images, [this](std::size_t i) { image(i); }, image_name);
        compare_lists("event", m_recorded.events, m_now.events, [this](std::size_t i) { event(i); }, event_name);
        compare_lists(
            "semaphore", m_recorded.semaphores, m_now.semaphores, [this](std::size_t i) { semaphore(i); },
            semaphore_name);
        compare_lists(
            "node", m_recorded.nodes, m_now.nodes,
            [this](std::size_t i) { compare_nodes(m_lines, m_recorded, m_now, i); }, node_name);
        edges();
        return std::move(m_lines).finish();
    }

private:
    template <class Item, class Compare, class Name>
    void compare_lists(std::string_view what, const std::vector<Item>& recorded, const std::vector<Item>& now,
                       Compare compare, Name name)
    {
        if (recorded.size() != now.size())
            m_lines.line(fmt::format("{}s: {} against {}", what, recorded.size(), now.size()));
        const std::size_t common = std::min(recorded.size(), now.size());
        for (std::size_t i = 0; i < common; ++i) compare(i);
        for (std::size_t i = common; i < recorded.size(); ++i) m_lines.gone(name(recorded[i], i));
        for (std::size_t i = common; i < now.size(); ++i) m_lines.added(name(now[i], i));
    }

    void region(std::size_t i)
    {
        const Region &a = m_recorded.regions[i], &b = m_now.regions[i];
        if (a == b) return;
        const std::string where = region_name(a, i);
        m_lines.text(where, "name", a.name, b.name);
        if (a.kind != b.kind) m_lines.line(where, "kind", to_string(a.kind), to_string(b.kind));
        m_lines.number(where, "size", a.size, b.size);
        m_lines.number(where, "alignment", a.alignment, b.alignment);
        m_lines.bytes(where, "contents", a.contents, b.contents);
        if (a.digest != b.digest) m_lines.line(where, "contents", elsewhere(a), elsewhere(b));
        const std::string its = inside(m_recorded, a), theirs = inside(m_now, b);
        if (its != theirs) m_lines.line(where, "lies", its, theirs);
        if (a.space != b.space) m_lines.line(where, "memory", to_string(a.space), to_string(b.space));
    }

    void scalar(std::size_t i)
    {
        const Scalar &a = m_recorded.scalars[i], &b = m_now.scalars[i];
        m_lines.text(scalar_name(a, i), "name", a.name, b.name);
        if (a.type != b.type)
            m_lines.line(scalar_name(a, i), "type", warmgraph::to_string(a.type), warmgraph::to_string(b.type));
    }

    void image(std::size_t i)
    {
        const ImageRef &a = m_recorded.images[i], &b = m_now.images[i];
        const auto identity = [](const ImageRef& image) {
            return fmt::format("{} {}", image.origin == Digest{} ? "bytes" : "source", short_hex(identity_of(image)));
        };
        if (identity_of(a) != identity_of(b)) m_lines.line(image_name(a, i), "", identity(a), identity(b));
        variables(image_name(a, i), a.variables, b.variables);
    }

    void variables(const std::string& where, const std::vector<ModuleVariable>& recorded,
                   const std::vector<ModuleVariable>& now)
    {
        std::map<std::string, std::pair<const ModuleVariable*, const ModuleVariable*>> pairs; // by name
        for (const ModuleVariable& variable : recorded) pairs[variable.name].first = &variable;
        for (const ModuleVariable& variable : now) pairs[variable.name].second = &variable;
        for (const auto& [name, both] : pairs) {
            const std::string what = fmt::format("{}: variable '{}'", where, printable(name));
            if (both.first == nullptr)
                m_lines.added(what);
            else if (both.second == nullptr)
                m_lines.gone(what);
            else
                m_lines.bytes(what, "contents", both.first->contents, both.second->contents);
        }
    }

    void event(std::size_t i)
    {
        const std::string &a = m_recorded.events[i], &b = m_now.events[i];
        m_lines.text(event_name(a, i), "name", a, b);
    }

    void semaphore(std::size_t i)
    {
        const std::string &a = m_recorded.semaphores[i], &b = m_now.semaphores[i];
        m_lines.text(semaphore_name(a, i), "name", a, b);
    }

    /// Compares the edges; removed edges come first. The edges may be unsorted, because the graph may never have been
    /// validated.
    void edges()
    {
        std::map<std::pair<std::uint32_t, std::uint32_t>, EdgeData> recorded, now;
        for (const Edge& edge : m_recorded.edges) recorded[{edge.from, edge.to}] = edge.data;
        for (const Edge& edge : m_now.edges) now[{edge.from, edge.to}] = edge.data;
        for (const auto& [ends, data] : recorded)
            if (!now.contains(ends)) m_lines.gone(edge_name(ends));
        for (const auto& [ends, data] : now) {
            const auto before = recorded.find(ends);
            if (before == recorded.end())
                m_lines.added(edge_name(ends));
            else if (before->second != data)
                m_lines.line(edge_name(ends), "", to_text(before->second), to_text(data));
        }
    }

    const Graph& m_recorded;
    const Graph& m_now;
    DifferenceLines m_lines;
};

} // namespace

void DifferenceLines::line(std::string text)
{
    ++m_total;
    if (m_lines.size() < m_limit) m_lines.push_back(std::move(text));
}

void DifferenceLines::line(const std::string& where, std::string_view what, std::string_view recorded,
                           std::string_view now)
{
    line(fmt::format("{}: {}{}{} against {}", where, what, what.empty() ? "" : " ", recorded, now));
}

void DifferenceLines::text(const std::string& where, std::string_view what, const std::string& recorded,
                           const std::string& now)
{
    if (recorded != now) line(where, what, '\'' + printable(recorded) + '\'', '\'' + printable(now) + '\'');
}

void DifferenceLines::bytes(const std::string& where, std::string_view what, const Bytes& recorded, const Bytes& now)
{
    if (recorded == now) return;
    if (recorded.size() != now.size())
        return line(where, what, fmt::format("of {} bytes", recorded.size()), fmt::format("of {} bytes", now.size()));
    const auto first = std::ranges::mismatch(recorded, now).in1 - recorded.begin();
    line(where, fmt::format("{} at byte {}:", what, first), hex(ByteView{recorded}.subspan(first)),
         hex(ByteView{now}.subspan(first)));
}

std::vector<std::string> DifferenceLines::finish() &&
{
    if (m_total > m_lines.size() && !m_lines.empty())
        m_lines.back() = fmt::format("and {} more differences", m_total - m_lines.size() + 1);
    return std::move(m_lines);
}

std::vector<std::string> difference(const Graph& recorded, const Graph& now, std::size_t limit)
{
    return GraphDifference{recorded, now, limit}.run();
}

} // namespace warmgraph::cachefmt
