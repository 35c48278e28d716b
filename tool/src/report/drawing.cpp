#include "report/drawing.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace warmgraph::tool {

namespace {

constexpr std::uint32_t k_none = std::numeric_limits<std::uint32_t>::max();

/// Finds for each node its only successor, if that has no other predecessor.
std::vector<std::uint32_t> only_successors(const cachefmt::Graph& graph)
{
    const std::size_t count = graph.nodes.size();
    std::vector<std::uint32_t> in(count), out(count), next(count, k_none);
    for (const cachefmt::Edge& edge : graph.edges) {
        ++out[edge.from];
        ++in[edge.to];
    }
    for (const cachefmt::Edge& edge : graph.edges)
        if (out[edge.from] == 1 && in[edge.to] == 1) next[edge.from] = edge.to;
    return next;
}

/// Boxes of up to `most_nodes` nodes in a chain, by their first node.
std::vector<Box> fold(const cachefmt::Graph& graph, std::size_t most_nodes)
{
    const std::vector<std::uint32_t> next = only_successors(graph);
    std::vector<bool> is_boxed(graph.nodes.size());
    std::vector<Box> boxes;
    for (std::uint32_t first = 0; first < graph.nodes.size(); ++first) {
        if (is_boxed[first]) continue;
        Box& box = boxes.emplace_back();
        for (std::uint32_t node = first; node != k_none && box.nodes.size() < most_nodes; node = next[node]) {
            box.nodes.push_back(node);
            is_boxed[node] = true;
        }
    }
    return boxes;
}

void leave_out(Drawing& drawing, std::size_t most_boxes)
{
    while (drawing.boxes.size() > most_boxes) {
        drawing.left_out += drawing.boxes.back().nodes.size();
        drawing.boxes.pop_back();
    }
}

void connect(Drawing& drawing, const cachefmt::Graph& graph)
{
    std::vector<std::uint32_t> box_of(graph.nodes.size(), k_none);
    for (std::uint32_t i = 0; i < drawing.boxes.size(); ++i)
        for (const std::uint32_t node : drawing.boxes[i].nodes) box_of[node] = i;
    for (const cachefmt::Edge& edge : graph.edges) {
        const std::uint32_t from = box_of[edge.from], to = box_of[edge.to];
        if (from != k_none && to != k_none && from != to) drawing.edges.emplace_back(from, to);
    }
    std::ranges::sort(drawing.edges);
    const auto [first, last] = std::ranges::unique(drawing.edges);
    drawing.edges.erase(first, last);
}

void put_into_layers(Drawing& drawing)
{
    for (const auto& [from, to] : drawing.edges) // sorted by `from`, so its layer is already known
        drawing.boxes[to].layer = std::max(drawing.boxes[to].layer, drawing.boxes[from].layer + 1);
}

/// The mean place of each box's predecessors. Boxes in this order have fewer crossing edges.
std::vector<double> places_before(const Drawing& drawing)
{
    std::vector<double> sum(drawing.boxes.size()), count(drawing.boxes.size());
    for (const auto& [from, to] : drawing.edges) {
        sum[to] += drawing.boxes[from].place;
        ++count[to];
    }
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] /= std::max(1.0, count[i]);
    return sum;
}

void put_into_places(Drawing& drawing)
{
    std::vector<std::uint32_t> order(drawing.boxes.size());
    std::iota(order.begin(), order.end(), 0U);
    constexpr int k_sweeps = 3;
    for (int sweep = 0; sweep < k_sweeps; ++sweep) {
        const std::vector<double> before = places_before(drawing);
        std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(drawing.boxes[a].layer, before[a]) < std::pair(drawing.boxes[b].layer, before[b]);
        });
        for (std::size_t i = 0; i < order.size(); ++i) {
            Box& box = drawing.boxes[order[i]];
            const bool is_first = i == 0 || drawing.boxes[order[i - 1]].layer != box.layer;
            box.place = is_first ? 0 : drawing.boxes[order[i - 1]].place + 1;
        }
    }
}

} // namespace

Drawing draw(const cachefmt::Graph& graph, std::size_t most_boxes)
{
    const std::size_t nodes_a_box = (graph.nodes.size() + most_boxes - 1) / most_boxes;
    Drawing drawing{fold(graph, std::max<std::size_t>(1, nodes_a_box)), {}, 0};
    leave_out(drawing, most_boxes);
    connect(drawing, graph);
    put_into_layers(drawing);
    put_into_places(drawing);
    return drawing;
}

} // namespace warmgraph::tool
