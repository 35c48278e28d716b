// The bare CUDA driver, to compare with: the few entry points that a hand-written replay needs, found at run time. Handles
// are the driver's (CUstream, CUgraph, CUgraphExec), of which only the size matters here.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace warmgraph::bench {

class CudaDriver {
public:
    /// Loads libcuda.so.1 once and makes device 0's primary context, which warmgraph uses too, this thread's current one.
    /// std::runtime_error where there is none.
    [[nodiscard]] static const CudaDriver& get();

    using Handle = void*;
    int (*init)(unsigned flags) = nullptr;
    int (*device_get)(int* device, int ordinal) = nullptr;
    int (*context_retain)(Handle* context, int device) = nullptr;
    int (*context_set)(Handle context) = nullptr;
    int (*begin_capture)(Handle stream, int mode) = nullptr;
    int (*end_capture)(Handle stream, Handle* graph) = nullptr;
    int (*instantiate)(Handle* exec, Handle graph, unsigned long long flags) = nullptr;
    int (*launch)(Handle exec, Handle stream) = nullptr;
    int (*exec_destroy)(Handle exec) = nullptr;
    int (*graph_destroy)(Handle graph) = nullptr;
    int (*stream_synchronize)(Handle stream) = nullptr;
    int (*graph_nodes)(Handle graph, Handle* nodes, std::size_t* count) = nullptr;
    int (*kernel_params)(Handle node, void* params) = nullptr; ///< a CUDA_KERNEL_NODE_PARAMS
    int (*set_kernel_params)(Handle exec, Handle node, const void* params) = nullptr;

    /// std::runtime_error naming the call where the status is not CUDA_SUCCESS.
    static void check(int status, const char* call);

private:
    CudaDriver();
};

/// A graph that the driver captured and instantiated: replay without warmgraph.
class NativeGraph {
public:
    /// `enqueue` enqueues in `stream`; its kernels have run before, so that nothing is loaded while capturing.
    NativeGraph(void* stream, const std::function<void()>& enqueue);
    NativeGraph(const NativeGraph&) = delete;
    NativeGraph& operator=(const NativeGraph&) = delete;
    ~NativeGraph();

    void launch() const { CudaDriver::check(m_driver.launch(m_exec, m_stream), "cuGraphLaunch"); }
    /// Gives every kernel its parameters again: what a rebinding of all of them costs the driver.
    void rewrite() const;
    [[nodiscard]] double instantiate_ms() const noexcept { return m_instantiate_ms; }

private:
    const CudaDriver& m_driver;
    void* m_stream;
    void* m_graph = nullptr;
    void* m_exec = nullptr;
    double m_instantiate_ms = 0;
    std::vector<void*> m_nodes; ///< all of them kernels
};

} // namespace warmgraph::bench
