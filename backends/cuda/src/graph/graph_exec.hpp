// An instantiated graph.
#pragma once

#include <span>
#include <vector>

#include "graph/graph_builder.hpp"

namespace warmgraph::backends::cuda {

/// A CUgraphExec, owned. The driver frees one that is still running when it has finished.
class NativeExec {
public:
    explicit NativeExec(const Core& core) noexcept : m_core(core) {}
    NativeExec(const NativeExec&) = delete;
    NativeExec& operator=(const NativeExec&) = delete;
    ~NativeExec();
    /// Names the node where the driver does: its index in `nodes`.
    [[nodiscard]] Result<void> instantiate(CUgraph graph, std::span<const CUgraphNode> nodes, unsigned long long flags);
    [[nodiscard]] CUgraphExec get() const noexcept { return m_exec; }

private:
    const Core& m_core;
    CUgraphExec m_exec = nullptr;
};

class CudaGraphExec final : public GraphExec {
public:
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> make(Core& core, BuiltGraph built);
    /// Somebody else's graph, which must outlive this object. update() is unsupported.
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> adopt(Core& core, CUgraph graph);
    /// RawGraph::native, which it keeps. update() is unsupported. REQUIRES: there is one, and it is this backend's.
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> make_captured(Core& core, const RawGraph& graph);

    /// A failed launch has enqueued nothing.
    [[nodiscard]] Result<void> launch(Stream& stream) noexcept override;
    [[nodiscard]] Result<void> launch_uncaptured(Stream& stream) noexcept override;
    /// The driver keeps the old parameters for launches in flight (cuGraphExecKernelNodeSetParams). unsupported where only
    /// another exec can hold the change: copies and fills of several rows, launch attributes. Allocates nothing, copies
    /// nothing but parameters; an unchanged node succeeds always.
    [[nodiscard]] Result<void> update(std::uint32_t node, const RawWork& work) noexcept override;
    [[nodiscard]] Result<void> upload() noexcept override;

private:
    [[nodiscard]] static Result<std::unique_ptr<CudaGraphExec>> instantiate_foreign(Core& core, CUgraph graph,
                                                                                    unsigned long long flags);
    CudaGraphExec(Core& core, BuiltGraph built) noexcept : m_core(core), m_built(std::move(built)), m_exec(core) {}

    Core& m_core;
    std::shared_ptr<const void> m_captured; ///< destroyed after m_exec
    BuiltGraph
        m_built; ///< updates name its nodes, so it stays, and change what is kept of them; destroyed after m_exec
    NativeExec m_exec;
};

} // namespace warmgraph::backends::cuda
