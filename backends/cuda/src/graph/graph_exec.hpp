// An instantiated graph.
#pragma once

#include <span>
#include <vector>

#include "graph/graph_builder.hpp"

namespace warmgraph::backends::cuda {

/// An owned CUgraphExec. While an exec runs, the driver delays its destruction.
class NativeExec {
public:
    explicit NativeExec(const Core& core) noexcept : m_core(core) {}
    NativeExec(const NativeExec&) = delete;
    NativeExec& operator=(const NativeExec&) = delete;
    ~NativeExec();
    /// Instantiates. The error names the node, as an index in `nodes`, if the driver does.
    [[nodiscard]] Result<void> instantiate(CUgraph graph, std::span<const CUgraphNode> nodes, unsigned long long flags);
    [[nodiscard]] CUgraphExec get() const noexcept { return m_exec; }

private:
    const Core& m_core;
    CUgraphExec m_exec = nullptr;
};

class CudaGraphExec final : public GraphExec {
public:
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> make(Core& core, BuiltGraph built);
    /// Instantiates a graph of other code, which must outlive this object. update() is unsupported.
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> adopt(Core& core, CUgraph graph);
    /// Instantiates RawGraph::native and keeps it. update() is unsupported. REQUIRES: RawGraph::native is set, and this
    /// backend made it.
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> make_captured(Core& core, const RawGraph& graph);

    /// A failed launch enqueued nothing.
    [[nodiscard]] Result<void> launch(Stream& stream) noexcept override;
    [[nodiscard]] Result<void> launch_uncaptured(Stream& stream) noexcept override;
    /// The driver keeps the old parameters for running launches (cuGraphExecKernelNodeSetParams). unsupported for
    /// changes that need a new exec: copies and fills of several rows, launch attributes. Allocates nothing and copies
    /// only parameters; an unchanged node always succeeds.
    [[nodiscard]] Result<void> update(std::uint32_t node, const RawWork& work) noexcept override;
    [[nodiscard]] Result<void> upload() noexcept override;

private:
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> instantiate_foreign(Core& core, CUgraph graph,
                                                                                    unsigned long long flags);
    CudaGraphExec(Core& core, BuiltGraph built) noexcept : m_core(core), m_built(std::move(built)), m_exec(core) {}

    Core& m_core;
    std::shared_ptr<const void> m_captured; ///< destroyed after m_exec
    BuiltGraph m_built; ///< update() uses its nodes and replaces their stored work; destroyed after m_exec
    NativeExec m_exec;
};

} // namespace warmgraph::backends::cuda
