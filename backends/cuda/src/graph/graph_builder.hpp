// A CUgraph, put together node by node.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "device/core.hpp"
#include "graph/host_pages.hpp"
#include "graph/native_graph.hpp"
#include "graph/nodes/nodes.hpp"
#include "warmgraph/backends/graph_builder.hpp"

namespace warmgraph::backends::cuda {

struct BuiltGraph {
    NativeGraph graph;
    std::vector<CUgraphNode> nodes{};         ///< as they were added
    std::deque<KernelFunction> functions{};   ///< that the nodes launch
    std::vector<KeptWork> kept{};             ///< of each node
    NodeBuffers buffers{};                    ///< room for the parameters of each of them
    unsigned long long instantiate_flags = 0; ///< CUgraphInstantiate_flags
};

/// Function attributes are set, node attributes set and read back, edges added with their nodes, or in groups of equal edge
/// data, and read back (measured): driver_failed when the driver holds something else than it was given.
class CudaGraphBuilder final : public GraphBuilder {
public:
    CudaGraphBuilder(const CudaGraphBuilder&) = delete;
    CudaGraphBuilder& operator=(const CudaGraphBuilder&) = delete;
    ~CudaGraphBuilder() override;
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphBuilder>> begin(Core& core, std::size_t nodes);

    [[nodiscard]] Result<void> add(const RawNode& node) override;
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate() override;
    /// Adds the edges that are not there yet. Once.
    [[nodiscard]] Result<BuiltGraph> finish();

private:
    struct NativeEdge;
    CudaGraphBuilder(Core& core, std::size_t nodes);
    [[nodiscard]] Result<void> connect();
    [[nodiscard]] Result<void> check_edges() const;
    [[nodiscard]] Result<std::vector<NativeEdge>> held_edges() const;
    [[nodiscard]] std::string describe(const NativeEdge& edge) const;

    GrownHeap m_heap; // before its turn to build
    // For as long as it builds: the driver's lock is shared with few, and each call would set these anew.
    Core::Building m_building;
    CurrentContext m_current;
    OutsideCapture m_outside;
    Core& m_core;
    std::size_t m_expected; ///< nodes
    KernelFunctions m_functions;
    std::vector<CUgraphNode> m_dependencies; ///< of the node that is being added
    std::vector<NativeEdge> m_edges;         ///< all of them
    std::vector<NativeEdge> m_later;         ///< of nodes with an edge that has data: one call with mixed data is wrong
    BuiltGraph m_built;
};

/// Priorities of nodes count only where the graph is instantiated for them; else the launching stream's holds for all, as
/// in a graph that nobody gave priorities.
[[nodiscard]] unsigned long long instantiate_flags_of(const RawGraph& graph) noexcept;

} // namespace warmgraph::backends::cuda
