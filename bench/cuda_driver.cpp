#include "cuda_driver.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dlfcn.h>

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
    void* graph = nullptr;
    CudaDriver::check(m_driver.begin_capture(stream, k_capture_thread_local), "cuStreamBeginCapture");
    try {
        enqueue();
    } catch (...) {
        if (m_driver.end_capture(stream, &graph) == 0 && graph != nullptr) m_driver.graph_destroy(graph);
        throw;
    }
    CudaDriver::check(m_driver.end_capture(stream, &graph), "cuStreamEndCapture");
    const int status = m_driver.instantiate(&m_exec, graph, 0);
    m_driver.graph_destroy(graph);
    CudaDriver::check(status, "cuGraphInstantiate");
}

NativeGraph::~NativeGraph() { m_driver.exec_destroy(m_exec); }

} // namespace warmgraph::bench
