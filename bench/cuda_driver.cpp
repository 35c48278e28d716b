#include "cuda_driver.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dlfcn.h>

#include "timing.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_capture_thread_local = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

template <class Function>
void find(void* library, const char* name, Function*& function)
{
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(fmt::format("libcuda.so.1 lacks {}", name));
}

} // namespace

void CudaDriver::check(int status, const char* call)
{
    if (status != 0) throw std::runtime_error(fmt::format("{} failed with CUDA error {}", call, status));
}

CudaDriver::CudaDriver()
{
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(fmt::format("there is no CUDA driver: {}", ::dlerror()));
    find(library, "cuInit", init);
    find(library, "cuDeviceGet", device_get);
    find(library, "cuDevicePrimaryCtxRetain", context_retain);
    find(library, "cuCtxSetCurrent", context_set);
    find(library, "cuStreamBeginCapture_v2", begin_capture);
    find(library, "cuStreamEndCapture", end_capture);
    find(library, "cuGraphInstantiateWithFlags", instantiate);
    find(library, "cuGraphLaunch", launch);
    find(library, "cuGraphExecDestroy", exec_destroy);
    find(library, "cuGraphDestroy", graph_destroy);
    find(library, "cuStreamSynchronize", stream_synchronize);
    find(library, "cuGraphGetNodes", graph_nodes);
    find(library, "cuGraphKernelNodeGetParams_v2", kernel_params);
    find(library, "cuGraphExecKernelNodeSetParams_v2", set_kernel_params);
    int device = 0;
    void* context = nullptr;
    check(init(0), "cuInit");
    check(device_get(&device, 0), "cuDeviceGet");
    check(context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(context_set(context), "cuCtxSetCurrent");
}

const CudaDriver& CudaDriver::get()
{
    static const CudaDriver driver;
    return driver;
}

NativeGraph::NativeGraph(void* stream, const std::function<void()>& enqueue)
    : m_driver(CudaDriver::get()), m_stream(stream)
{
    CudaDriver::check(m_driver.begin_capture(stream, k_capture_thread_local), "cuStreamBeginCapture");
    try {
        enqueue();
    } catch (...) {
        if (m_driver.end_capture(stream, &m_graph) == 0 && m_graph != nullptr) m_driver.graph_destroy(m_graph);
        throw;
    }
    CudaDriver::check(m_driver.end_capture(stream, &m_graph), "cuStreamEndCapture");
    std::size_t count = 0;
    CudaDriver::check(m_driver.graph_nodes(m_graph, nullptr, &count), "cuGraphGetNodes");
    m_nodes.resize(count);
    CudaDriver::check(m_driver.graph_nodes(m_graph, m_nodes.data(), &count), "cuGraphGetNodes");
    const SteadyTime begin = now();
    CudaDriver::check(m_driver.instantiate(&m_exec, m_graph, 0), "cuGraphInstantiate");
    m_instantiate_ms = milliseconds_since(begin);
}

void NativeGraph::rewrite() const
{
    alignas(std::max_align_t) std::array<std::byte, 256> params{}; // more than the struct has (72 bytes)
    for (void* const node : m_nodes) {
        CudaDriver::check(m_driver.kernel_params(node, params.data()), "cuGraphKernelNodeGetParams");
        CudaDriver::check(m_driver.set_kernel_params(m_exec, node, params.data()), "cuGraphExecKernelNodeSetParams");
    }
}

NativeGraph::~NativeGraph()
{
    m_driver.exec_destroy(m_exec);
    m_driver.graph_destroy(m_graph);
}

} // namespace warmgraph::bench
