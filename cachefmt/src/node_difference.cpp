#include "node_difference.hpp"

#include <algorithm>

#include "describe.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {

void NodeDifference::slot(const Slot& a, const Slot& b) const
{
    const bool points_elsewhere = a.kind != b.kind || a.target != b.target || a.addend != b.addend;
    if (points_elsewhere) line("", to_text(a, m_recorded), to_text(b, m_now));
    number("offset", a.offset, b.offset);
    number("width", int{a.width}, int{b.width});
}

void NodeDifference::slots(const std::vector<Slot>& a, const std::vector<Slot>& b) const
{
    number("slots", a.size(), b.size());
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) part(fmt::format("slot {}", i)).slot(a[i], b[i]);
}

void compare_nodes(DifferenceLines& lines, const Graph& recorded, const Graph& now, std::size_t index)
{
    const Node &a = recorded.nodes[index], &b = now.nodes[index];
    if (a == b) return;
    const std::string where = node_name(a, index);
    if (a.index() != b.index()) return lines.line(where, "", node_kind(a), node_name(b, index));
    format_of(a).compare(NodeDifference{lines, recorded, now, where}, a, b);
}

} // namespace warmgraph::cachefmt
