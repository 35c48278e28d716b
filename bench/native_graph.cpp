#include "native_graph.hpp"

#include <cstdlib>

#include "timing.hpp"

namespace warmgraph::bench {

const backends::cuda::Driver& driver()
{
    static const auto found = [] {
        const char* const library = std::getenv("WARMGRAPH_CUDA_DRIVER");
        auto loaded = checked(backends::cuda::Driver::load(library != nullptr ? library : "libcuda.so.1"));
        CUdevice device = 0;
        CUcontext context = nullptr;
        checked(loaded->call("cuInit", loaded->cuInit, 0U));
        checked(loaded->call("cuDeviceGet", loaded->cuDeviceGet, &device, 0));
        checked(loaded->call("cuDevicePrimaryCtxRetain", loaded->cuDevicePrimaryCtxRetain, &context, device));
        checked(loaded->call("cuCtxPushCurrent", loaded->cuCtxPushCurrent, context));
        return loaded;
    }();
    return *found;
}

NativeGraph::NativeGraph(void* stream, const std::function<void()>& enqueue) : m_stream(static_cast<CUstream>(stream))
{
    WARMGRAPH_CU(cuStreamBeginCapture, m_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    try {
        enqueue();
    } catch (...) {
        if (driver().cuStreamEndCapture(m_stream, &m_graph) == CUDA_SUCCESS && m_graph != nullptr)
            driver().cuGraphDestroy(m_graph);
        throw;
    }
    WARMGRAPH_CU(cuStreamEndCapture, m_stream, &m_graph);
    std::size_t count = 0;
    WARMGRAPH_CU(cuGraphGetNodes, m_graph, nullptr, &count);
    m_nodes.resize(count);
    WARMGRAPH_CU(cuGraphGetNodes, m_graph, m_nodes.data(), &count);
    const SteadyTime begin = now();
    WARMGRAPH_CU(cuGraphInstantiate, &m_exec, m_graph, 0ULL);
    m_instantiate_ms = milliseconds_since(begin);
}

void NativeGraph::rewrite() const
{
    for (const CUgraphNode node : m_nodes) {
        CUDA_KERNEL_NODE_PARAMS params{};
        WARMGRAPH_CU(cuGraphKernelNodeGetParams, node, &params);
        WARMGRAPH_CU(cuGraphExecKernelNodeSetParams, m_exec, node, &params);
    }
}

NativeGraph::~NativeGraph()
{
    driver().cuGraphExecDestroy(m_exec);
    driver().cuGraphDestroy(m_graph);
}

} // namespace warmgraph::bench
