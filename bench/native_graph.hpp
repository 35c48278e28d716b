// The bare CUDA driver, to compare with: the backend's table of entry points, called with nothing in between.
#pragma once

#include <functional>
#include <vector>

#include "checked.hpp"
#include "device/driver.hpp"

namespace warmgraph::bench {

/// Device 0's primary context, which warmgraph uses too, is the current one of the thread that asks first. std::runtime_error
/// where there is no driver or no device.
[[nodiscard]] const backends::cuda::Driver& driver();

/// std::runtime_error with the driver's text where the call fails: WARMGRAPH_CU(cuInit, 0U).
#define WARMGRAPH_CU(name, ...)                                                                                        \
    ::warmgraph::bench::checked(                                                                                       \
        ::warmgraph::bench::driver().call(#name, ::warmgraph::bench::driver().name __VA_OPT__(, ) __VA_ARGS__))

/// A graph that the driver captured and instantiated: replay without warmgraph.
class NativeGraph {
public:
    /// `enqueue` enqueues in `stream`; its kernels have run before, so that nothing is loaded while capturing.
    NativeGraph(void* stream, const std::function<void()>& enqueue);
    NativeGraph(const NativeGraph&) = delete;
    NativeGraph& operator=(const NativeGraph&) = delete;
    ~NativeGraph();

    void launch() const { WARMGRAPH_CU(cuGraphLaunch, m_exec, m_stream); }
    /// Gives every kernel its parameters again: what a rebinding of all of them costs the driver.
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
