// A raw graph as a CUgraph.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core.hpp"

namespace warmgraph::backends::cuda {

struct KernelInfo;

/// A CUgraph, owned.
class NativeGraph {
public:
    explicit NativeGraph(const Driver& driver) noexcept : m_driver(&driver) {}
    NativeGraph(NativeGraph&& other) noexcept : m_driver(other.m_driver), m_graph(std::exchange(other.m_graph, nullptr))
    {
    }
    NativeGraph& operator=(NativeGraph&& other) noexcept
    {
        std::swap(m_driver, other.m_driver);
        std::swap(m_graph, other.m_graph);
        return *this;
    }
    ~NativeGraph()
    {
        if (m_graph != nullptr)
            static_cast<void>(m_driver->status("cuGraphDestroy", m_driver->cuGraphDestroy, m_graph));
    }
    [[nodiscard]] CUgraph get() const noexcept { return m_graph; }
    [[nodiscard]] CUgraph* out() noexcept { return &m_graph; }

private:
    const Driver* m_driver;
    CUgraph m_graph = nullptr;
};

/// A kernel in use, resolved.
struct KernelFunction {
    Module* module = nullptr;
    std::string name;
    const KernelInfo* info = nullptr;       ///< the module's
    std::vector<FunctionAttribute> applied; ///< what was set last
};

/// Raw graphs hold the driver's events as numbers.
[[nodiscard]] inline CUevent event_of(std::uint64_t handle) noexcept
{
    return reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(handle)); // NOLINT: so it was read
}

struct BuiltGraph {
    NativeGraph graph;
    std::vector<CUgraphNode> nodes; ///< as RawGraph::nodes
    std::deque<KernelFunction> functions;
    std::vector<const KernelFunction*> kernels; ///< as RawGraph::nodes, into `functions`; null for other kinds
};

/// Function attributes are set, node attributes set and read back, edges added in groups of equal edge data and read back
/// (measured): driver_failed when the driver holds something else than it was given.
[[nodiscard]] Result<BuiltGraph> build_graph(Core& core, const RawGraph& graph);

} // namespace warmgraph::backends::cuda
