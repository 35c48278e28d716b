#include "bare_driver.hpp"

#include <array>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include <dlfcn.h>

namespace warmgraph::bench {
namespace {

using FindFunction = decltype(&::cuGetProcAddress);

/// `symbol` is the header's versioned one ("cuMemAlloc_v2").
void* find_function(void* library, FindFunction find, const char* name, const char* symbol)
{
    if (void* const address = ::dlsym(library, symbol); address != nullptr) return address;
    void* address = nullptr;
    if (find == nullptr || find(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS ||
        address == nullptr)
        throw std::runtime_error(fmt::format("the CUDA driver has no {}: update it", name));
    return address;
}

} // namespace

BareDriver::BareDriver()
{
    const char* const chosen = std::getenv("WARMGRAPH_CUDA_DRIVER");
    const char* const name = chosen != nullptr && *chosen != '\0' ? chosen : "libcuda.so.1";
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw std::runtime_error(
            fmt::format("no CUDA driver: {}; run this on a machine with an NVIDIA GPU", ::dlerror()));
    const auto find = reinterpret_cast<FindFunction>(::dlsym(library, "cuGetProcAddress_v2"));
    const auto resolve = [&]<class Function>(const char* plain, const char* symbol, Function& target) {
        target = reinterpret_cast<Function>(find_function(library, find, plain, symbol));
    };
#define WARMGRAPH_BARE_TEXT(symbol) #symbol
#define WARMGRAPH_BARE_SYMBOL(name) WARMGRAPH_BARE_TEXT(name)
#define WARMGRAPH_BARE_RESOLVE(name) resolve(#name, WARMGRAPH_BARE_SYMBOL(name), this->name);
    WARMGRAPH_BARE_CALLS(WARMGRAPH_BARE_RESOLVE)
#undef WARMGRAPH_BARE_RESOLVE
#undef WARMGRAPH_BARE_SYMBOL
#undef WARMGRAPH_BARE_TEXT
    call("cuInit", cuInit, 0U);
    int count = 0;
    call("cuDeviceGetCount", cuDeviceGetCount, &count);
    if (count == 0) throw std::runtime_error("the CUDA driver has no device: run this on a machine with an NVIDIA GPU");
}

const BareDriver& BareDriver::get()
{
    static const BareDriver driver;
    return driver;
}

void BareDriver::fail(const char* name, CUresult status) const
{
    const char* code = nullptr;
    const char* text = nullptr;
    if (cuGetErrorName(status, &code) != CUDA_SUCCESS || code == nullptr) code = "an unknown error";
    if (cuGetErrorString(status, &text) != CUDA_SUCCESS || text == nullptr) text = "no text";
    throw std::runtime_error(fmt::format("{} failed: {} ({})", name, code, text));
}

std::string BareDriver::describe(int ordinal) const
{
    CUdevice device = 0;
    call("cuDeviceGet", cuDeviceGet, &device, ordinal);
    std::array<char, 256> name{};
    call("cuDeviceGetName", cuDeviceGetName, name.data(), static_cast<int>(name.size()) - 1, device);
    int version = 0;
    call("cuDriverGetVersion", cuDriverGetVersion, &version);
    return fmt::format("{}, driver interface {}.{}", name.data(), version / 1000, version % 1000 / 10);
}

BareContext::BareContext(int ordinal) : driver(BareDriver::get())
{
    CUdevice device = 0;
    driver.call("cuDeviceGet", driver.cuDeviceGet, &device, ordinal);
    driver.call("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain, &context, device);
    driver.call("cuCtxSetCurrent", driver.cuCtxSetCurrent, context);
    driver.call("cuStreamCreate", driver.cuStreamCreate, &stream, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
}

} // namespace warmgraph::bench
