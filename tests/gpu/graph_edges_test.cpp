// Graphs with many nodes, with many edges, and with edge data.
#include <array>
#include <chrono>
#include <iostream>
#include <random>

#include "graph_fixture.hpp"

namespace warmgraph::test::graph_edges_test {
namespace {

class GraphEdges : public GraphTest {
protected:
    void connect(CUgraph in, CUgraphNode from, CUgraphNode to, EdgeData data) const
    {
        CUgraphEdgeData native_data{};
        native_data.from_port = data.from_port;
        native_data.to_port = data.to_port;
        native_data.type = data.type;
        native.check(driver.cuGraphAddDependencies(in, &from, &to, &native_data, 1), "cuGraphAddDependencies");
    }
};

TEST_F(GraphEdges, KeepTheirDataInAMixedGraph)
{
    constexpr EdgeData k_programmatic{CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    constexpr EdgeData k_launch_order{CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    constexpr std::array k_kinds{EdgeData{}, k_programmatic, k_launch_order};
    std::mt19937 random(7);
    const NativeGraph made = graph();
    std::vector<CUgraphNode> nodes;
    std::vector<std::vector<std::pair<std::uint32_t, EdgeData>>> expected(60);
    for (std::uint32_t to = 0; to < expected.size(); ++to) {
        nodes.push_back(add_touch(made.get(), y, static_cast<int>(to)));
        for (std::uint32_t from = 0; from < to; ++from) {
            if (random() % 8 != 0) continue;
            const EdgeData data = k_kinds.at(random() % k_kinds.size());
            connect(made.get(), nodes[from], nodes[to], data);
            expected[to].emplace_back(from, data);
        }
    }
    const RawGraph raw = expect_read_back(made);
    ASSERT_EQ(raw.nodes.size(), expected.size());
    for (std::size_t to = 0; to < expected.size(); ++to) {
        const RawNode& node = raw.nodes[to];
        ASSERT_EQ(node.dependencies.size(), expected[to].size()) << "node " << to;
        for (std::size_t i = 0; i < expected[to].size(); ++i) {
            EXPECT_EQ(node.dependencies[i], expected[to][i].first) << "node " << to;
            EXPECT_EQ(node.edges.empty() ? EdgeData{} : node.edges[i], expected[to][i].second) << "node " << to;
        }
    }
}

TEST_F(GraphEdges, GiveTheSameOrderForEqualCaptures)
{
    const CUdeviceptr other = allocate();
    const CUstream fork = native.stream();
    const auto work = [&] {
        const CUevent start = native.event(), end = native.event();
        touch(stream, y, 1);
        native.event_record(start, stream);
        native.stream_wait(fork, start);
        for (int i = 0; i < 20; ++i) {
            touch(stream, y, i);
            touch(fork, other, -i);
        }
        native.event_record(end, fork);
        native.stream_wait(stream, end);
        touch(stream, y, 2);
    };
    const RawGraph first = expect_same(capture(work)), second = read(capture(work));
    EXPECT_TRUE(first == second);
    EXPECT_EQ(first.nodes.size(), 42U);
}

TEST_F(GraphEdges, PutANodeBehindAllThatItDependsOn)
{
    const NativeGraph made = graph();
    const CUgraphNode last = add_touch(made.get(), y, 1), middle = add_touch(made.get(), y, 2),
                      first = add_touch(made.get(), y, 3);
    connect(made.get(), first, middle, {});
    connect(made.get(), middle, last, {});
    const RawGraph raw = expect_same(made);
    const auto add_of = [&](std::size_t node) {
        return load<int>(std::get<RawKernel>(raw.nodes.at(node).work).params[2].value);
    };
    EXPECT_EQ(add_of(0), 3);
    EXPECT_EQ(add_of(1), 2);
    EXPECT_EQ(add_of(2), 1);
}

TEST_F(GraphEdges, AreBuiltFastForTwentyThousandNodes)
{
    constexpr int k_nodes = 20'000;
    const NativeGraph captured = capture([&] {
        for (int i = 0; i < k_nodes; ++i) touch(stream, y, i);
    });
    const RawGraph raw = expect_same(captured);
    ASSERT_EQ(raw.nodes.size(), static_cast<std::size_t>(k_nodes));
    const auto before = std::chrono::steady_clock::now();
    const auto built = take(build_graph(gpu.core, raw));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
    std::cout << took.count() * 1e6 / k_nodes << " us per node\n";
    EXPECT_LT(took.count(), 0.5);
}

TEST_F(GraphEdges, OfNoNodesAreFine)
{
    const RawGraph raw = expect_read_back(graph());
    EXPECT_TRUE(raw.nodes.empty());
    const auto exec = take(make_exec(gpu.core, raw));
    EXPECT_TRUE(succeeded(exec->launch(*exec_stream)));
    EXPECT_TRUE(succeeded(exec_stream->synchronize()));
}

TEST_F(GraphEdges, MustEndInEarlierNodesAndHaveDataForEach)
{
    RawGraph raw = read(capture([&] {
        touch(stream, y, 1);
        touch(stream, y, 2);
    }));
    raw.nodes[1].edges = {{}, {}};
    EXPECT_TRUE(failed_with(build_graph(gpu.core, raw), ErrorCode::invalid_argument, "node 1"));
    raw.nodes[1].edges.clear();
    raw.nodes[1].dependencies = {1};
    EXPECT_TRUE(failed_with(build_graph(gpu.core, raw), ErrorCode::invalid_argument, "not an earlier node"));
}

} // namespace
} // namespace warmgraph::test::graph_edges_test
