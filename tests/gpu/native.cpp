#include "native.hpp"

#include <stdexcept>

#include <dlfcn.h>

#include "code/nvrtc.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test {

namespace {

template <class T>
T take(Result<T> result)
{
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
}

std::string library()
{
    const char* const named = std::getenv("WARMGRAPH_CUDA_DRIVER");
    return named != nullptr ? named : "libcuda.so.1";
}

} // namespace

const Native& Native::instance()
{
    static const Native native;
    return native;
}

Native::Native() : m_driver(take(Driver::load(library())))
{
    CUdevice device = 0;
    check(m_driver->cuInit(0), "cuInit");
    check(m_driver->cuDeviceGet(&device, 0), "cuDeviceGet");
    check(m_driver->cuDevicePrimaryCtxRetain(&m_context, device), "cuDevicePrimaryCtxRetain");
    check(m_driver->cuCtxPushCurrent(m_context), "cuCtxPushCurrent");
}

void Native::check(CUresult status, const char* call) const
{
    if (status != CUDA_SUCCESS) throw std::runtime_error(m_driver->error(call, status).message);
}

void* Native::find_address(const char* name) const
{
    void* const handle = ::dlopen(library().c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto get = reinterpret_cast<decltype(&::cuGetProcAddress)>(::dlsym(handle, "cuGetProcAddress_v2"));
    void* address = nullptr;
    if (get == nullptr || get(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS ||
        address == nullptr)
        throw std::runtime_error(std::string("the driver has no ") + name);
    return address;
}

Bytes Native::compile(std::string_view source, std::string_view options)
{
    static const std::shared_ptr<backends::Device> device = [] {
        backends::register_backend(backends::make_cuda_backend());
        return take(backends::open_device("cuda:0"));
    }();
    return take(take(device->compiler().compile(source, options))->image());
}

int Native::compute_capability() const
{
    CUdevice device = 0;
    check(m_driver->cuDeviceGet(&device, 0), "cuDeviceGet");
    int major = 0, minor = 0;
    for (const auto& [what, value] : {std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                                      std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}})
        check(m_driver->cuDeviceGetAttribute(value, what, device), "cuDeviceGetAttribute");
    return 10 * major + minor;
}

Bytes Native::compile_and_link(std::string_view source) const
{
    Bytes part = take(take(backends::cuda::Nvrtc::load(""))
                          ->compile(source, {"-rdc=true"}, "sm_" + std::to_string(compute_capability())));
    CUlinkState link = nullptr;
    check(find<decltype(&cuLinkCreate)>("cuLinkCreate")(0, nullptr, nullptr, &link), "cuLinkCreate");
    check(find<decltype(&cuLinkAddData)>("cuLinkAddData")(link, CU_JIT_INPUT_CUBIN, part.data(), part.size(), "part", 0,
                                                          nullptr, nullptr),
          "cuLinkAddData");
    void* linked = nullptr;
    std::size_t size = 0;
    check(find<decltype(&cuLinkComplete)>("cuLinkComplete")(link, &linked, &size), "cuLinkComplete");
    const auto* const bytes = static_cast<const std::byte*>(linked);
    Bytes image(bytes, bytes + size);
    check(find<decltype(&cuLinkDestroy)>("cuLinkDestroy")(link), "cuLinkDestroy");
    return image;
}

CUmodule Native::load(ByteView cubin) const
{
    CUmodule module = nullptr;
    check(m_driver->cuModuleLoadData(&module, cubin.data()), "cuModuleLoadData");
    return module;
}

CUfunction Native::function(CUmodule module, const char* name) const
{
    CUfunction function = nullptr;
    check(m_driver->cuModuleGetFunction(&function, module, name), "cuModuleGetFunction");
    return function;
}

CUstream Native::stream() const
{
    CUstream stream = nullptr;
    check(m_driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return stream;
}

CUevent Native::event() const
{
    CUevent event = nullptr;
    check(m_driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return event;
}

void Native::event_record(CUevent event, CUstream stream) const
{
    check(m_driver->cuEventRecord(event, stream), "cuEventRecord");
}

void Native::stream_wait(CUstream stream, CUevent event) const
{
    check(m_driver->cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

void Native::launch(CUstream stream, CUfunction function, unsigned grid, unsigned block, std::vector<void*> params,
                    unsigned shared_bytes, std::vector<CUlaunchAttribute> attributes) const
{
    CUlaunchConfig config{};
    config.gridDimX = grid;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = block;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = shared_bytes;
    config.hStream = stream;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    check(m_driver->cuLaunchKernelEx(&config, function, params.data(), nullptr), "cuLaunchKernelEx");
}

} // namespace warmgraph::test
