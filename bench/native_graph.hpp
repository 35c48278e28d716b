// The bare CUDA driver for comparison: the backend's table of entry points, called directly.
#pragma once

#include <functional>
#include <vector>

#include "checked.hpp"
#include "device/driver.hpp"

namespace warmgraph::bench {

/// Makes device 0's primary context, which warmgraph uses too, current in the first calling thread. Throws
/// std::runtime_error when there is no driver or no device.
[[nodiscard]] const backends::cuda::Driver& driver();

/// Calls the driver: WARMGRAPH_CU(cuInit, 0U). Throws std::runtime_error with the driver's text when the call fails.
#define WARMGRAPH_CU(name, ...)                                                                                        \
    ::warmgraph::bench::checked(                                                                                       \
        ::warmgraph::bench::driver().call(#name, ::warmgraph::bench::driver().name __VA_OPT__(, ) __VA_ARGS__))

/// A graph that the driver captured and instantiated, for replay without warmgraph.
class NativeGraph {
public:
    /// `enqueue` enqueues in `stream`. Its kernels must have run before, so that capturing loads nothing.
    NativeGraph(void* stream, const std::function<void()>& enqueue);
    NativeGraph(const NativeGraph&) = delete;
    NativeGraph& operator=(const NativeGraph&) = delete;
    ~NativeGraph();

    void launch() const { WARMGRAPH_CU(cuGraphLaunch, m_exec, m_stream); }
    /// Sets every kernel's parameters again, to measure the driver's cost of rebinding all of them.
    void rewrite() const;
    [[nodiscard]] double instantiate_ms() const noexcept { return m_instantiate_ms; }

private:
    CUstream m_stream;
    CUgraph m_graph = nullptr;
    CUgraphExec m_exec = nullptr;
    double m_instantiate_ms = 0;
    std::vector<CUgraphNode> m_nodes; ///< all of them kernels
};

} // namespace warmgraph::bench
