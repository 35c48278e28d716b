// Tests the layers in the report's drawings of graphs.
#include <gtest/gtest.h>

#include "report/drawing.hpp"

namespace warmgraph::test::drawing_test {
namespace {

using tool::draw;
using tool::Drawing;

cachefmt::Graph graph_of(std::size_t nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges)
{
    cachefmt::Graph graph;
    graph.nodes.resize(nodes);
    for (const auto& [from, to] : edges) graph.edges.push_back({from, to, {}});
    return graph;
}

cachefmt::Graph chain_of(std::size_t nodes)
{
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::uint32_t i = 1; i < nodes; ++i) edges.emplace_back(i - 1, i);
    return graph_of(nodes, edges);
}

std::vector<std::uint32_t> layers_of(const Drawing& drawing)
{
    std::vector<std::uint32_t> layers;
    for (const tool::Box& box : drawing.boxes) layers.push_back(box.layer);
    return layers;
}

TEST(TheDrawing, OfNothingIsEmpty)
{
    const Drawing drawing = draw({}, 10);
    EXPECT_TRUE(drawing.boxes.empty());
    EXPECT_EQ(drawing.left_out, 0U);
}

TEST(TheDrawing, PutsEachNodeBelowAllThatItWaitsFor)
{
    const Drawing drawing = draw(graph_of(4, {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}), 10);
    EXPECT_EQ(layers_of(drawing), (std::vector<std::uint32_t>{0, 1, 2, 3}));
    const Drawing diamond = draw(graph_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}), 10);
    EXPECT_EQ(layers_of(diamond), (std::vector<std::uint32_t>{0, 1, 1, 2}));
    EXPECT_NE(diamond.boxes[1].place, diamond.boxes[2].place);
    EXPECT_EQ(diamond.edges.size(), 4U);
}

TEST(TheDrawing, PutsThoseThatFollowOneAnotherBelowEachOther)
{
    // Two chains lie side by side. Their second nodes are listed in the opposite order.
    const Drawing drawing = draw(graph_of(4, {{0, 3}, {1, 2}}), 10);
    EXPECT_EQ(drawing.boxes[3].place, drawing.boxes[0].place);
    EXPECT_EQ(drawing.boxes[2].place, drawing.boxes[1].place);
}

TEST(TheDrawing, FoldsARowOfNodesWhereThereAreTooMany)
{
    const Drawing drawing = draw(chain_of(1000), 10);
    ASSERT_EQ(drawing.boxes.size(), 10U);
    EXPECT_EQ(drawing.edges.size(), 9U);
    EXPECT_EQ(drawing.left_out, 0U);
    for (const tool::Box& box : drawing.boxes) EXPECT_EQ(box.nodes.size(), 100U);
    EXPECT_EQ(drawing.boxes[9].nodes.back(), 999U);
    EXPECT_EQ(draw(chain_of(10), 10).boxes.size(), 10U) << "nothing is folded where all fit";
}

TEST(TheDrawing, LeavesOutWhatCannotBeFolded)
{
    const Drawing drawing = draw(graph_of(100, {{0, 99}, {0, 1}}), 10);
    EXPECT_EQ(drawing.boxes.size(), 10U);
    EXPECT_EQ(drawing.left_out, 90U);
    EXPECT_EQ(drawing.edges, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 1}}));
}

} // namespace
} // namespace warmgraph::test::drawing_test
