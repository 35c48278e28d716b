// Builds a CUgraph node by node.
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
    std::vector<CUgraphNode> nodes{};         ///< in the order in which they were added
    std::deque<KernelFunction> functions{};   ///< the functions that the nodes launch
    std::vector<KeptWork> kept{};             ///< the last work of each node, as far as updates need it
    NodeBuffers buffers{};                    ///< reused storage for the parameters of a node
    unsigned long long instantiate_flags = 0; ///< CUgraphInstantiate_flags
};

/// Sets function attributes and node attributes, and adds edges with their nodes or in groups of equal edge data. Reads
/// node attributes and edges back: driver_failed if the driver holds other values (measured).
class CudaGraphBuilder final : public GraphBuilder {
public:
    CudaGraphBuilder(const CudaGraphBuilder&) = delete;
    CudaGraphBuilder& operator=(const CudaGraphBuilder&) = delete;
    ~CudaGraphBuilder() override;
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphBuilder>> begin(Core& core, std::size_t nodes);

    [[nodiscard]] Result<void> add(const RawNode& node) override;
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate() override;
    /// Adds the remaining edges. Call it once.
    [[nodiscard]] Result<BuiltGraph> finish();

private:
    struct NativeEdge;
    CudaGraphBuilder(Core& core, std::size_t nodes);
    [[nodiscard]] Result<void> connect();
    [[nodiscard]] Result<void> check_edges() const;
    [[nodiscard]] Result<std::vector<NativeEdge>> held_edges() const;
    [[nodiscard]] std::string describe(const NativeEdge& edge) const;

    GrownHeap m_heap; // made before the thread waits for its turn to build
    // The next three members live as long as the builder: few threads share the driver's lock, and the context is set
    // only once.
    Core::BuilderPermit m_building;
    CurrentContext m_current;
    OutsideCapture m_outside;
    Core& m_core;
    std::size_t m_expected; ///< number of nodes
    KernelFunctions m_functions;
    std::vector<CUgraphNode> m_dependencies; ///< dependencies of the node that is being added
    std::vector<NativeEdge> m_edges;         ///< all edges
    std::vector<NativeEdge> m_later;         ///< edges of nodes with edge data, which need separate calls
    BuiltGraph m_built;
};

/// Node priorities only count if the graph is instantiated with this flag. Without it all nodes have the launching
/// stream's priority, which is right for graphs without node priorities.
[[nodiscard]] unsigned long long instantiate_flags_of(const RawGraph& graph) noexcept;

} // namespace warmgraph::backends::cuda
