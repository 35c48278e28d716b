#include "device/driver.hpp"

#include <filesystem>
#include <type_traits>

#include <dlfcn.h>

namespace warmgraph::backends::cuda {
namespace {

using FindFunction = decltype(&::cuGetProcAddress);

/// Finds a function. `symbol` is the header's versioned name ("cuMemAlloc_v2"), which has the header's signature. For a
/// plain name and a version, an older driver may return a function with an older signature (cuGraphAddDependencies
/// before 13.0).
void* find_function(void* library, FindFunction find, const char* name, const char* symbol)
{
    if (void* const address = ::dlsym(library, symbol); address != nullptr) return address;
    void* address = nullptr;
    const CUresult status = find(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
    return status == CUDA_SUCCESS ? address : nullptr;
}

std::string path_of(void* code)
{
    Dl_info info{};
    if (code == nullptr || ::dladdr(code, &info) == 0 || info.dli_fname == nullptr) return {};
    std::error_code error;
    const auto path = std::filesystem::canonical(info.dli_fname, error);
    return error ? std::string(info.dli_fname) : path.string();
}

} // namespace

Driver::~Driver() // NOLINT(modernize-use-equals-default): the body explains
{
    // Never closed, because the driver's threads and exit handlers need its code.
}

Error Driver::error(const char* function, CUresult status) const
{
    const char* name = nullptr;
    const char* text = nullptr;
    if (cuGetErrorName == nullptr || cuGetErrorName(status, &name) != CUDA_SUCCESS) name = nullptr;
    if (cuGetErrorString == nullptr || cuGetErrorString(status, &text) != CUDA_SUCCESS) text = nullptr;
    const ErrorCode code = status == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::driver_failed;
    return {code, fmt::format("{} failed: {} ({})", function,
                              name != nullptr ? name : std::to_string(static_cast<int>(status)),
                              text != nullptr ? text : "no text")};
}

Result<std::shared_ptr<const Driver>> Driver::load(const std::string& library)
{
    auto driver = std::make_shared<Driver>();
    driver->m_library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (driver->m_library == nullptr) {
        const char* const why = ::dlerror();
        return fail(
            ErrorCode::not_found,
            "no CUDA driver was found: {}; install the NVIDIA driver, or set WARMGRAPH_CUDA_DRIVER to its library",
            why != nullptr ? why : library.c_str());
    }
    const auto find = reinterpret_cast<FindFunction>(::dlsym(driver->m_library, "cuGetProcAddress_v2"));
    if (find == nullptr)
        return fail(ErrorCode::unsupported,
                    "the CUDA driver in {} is older than 12.0, expected 12.0 or newer: update it", library);
    const char* missing = nullptr; // the first missing function
    const auto resolve = [&]<class Function>(const char* name, const char* symbol, Function& target) {
        void* const address = find_function(driver->m_library, find, name, symbol);
        if (address == nullptr && missing == nullptr) missing = name;
        target = reinterpret_cast<Function>(address);
    };
#define WARMGRAPH_CUDA_TEXT(symbol) #symbol
#define WARMGRAPH_CUDA_SYMBOL(name) WARMGRAPH_CUDA_TEXT(name)
#define WARMGRAPH_CUDA_RESOLVE(name) resolve(#name, WARMGRAPH_CUDA_SYMBOL(name), driver->name);
    WARMGRAPH_CUDA_REQUIRED(WARMGRAPH_CUDA_RESOLVE)
    const char* const missing_required = missing;
    WARMGRAPH_CUDA_OPTIONAL(WARMGRAPH_CUDA_RESOLVE)
#undef WARMGRAPH_CUDA_RESOLVE
#undef WARMGRAPH_CUDA_SYMBOL
#undef WARMGRAPH_CUDA_TEXT
    driver->path = path_of(reinterpret_cast<void*>(driver->cuInit));
    if (driver->cuDriverGetVersion != nullptr) static_cast<void>(driver->cuDriverGetVersion(&driver->version));
    if (missing_required != nullptr)
        return fail(ErrorCode::unsupported,
                    "the CUDA driver in {} (version {}.{}) has no {}, expected CUDA 12.4 or newer: update it", library,
                    driver->version / 1000, driver->version % 1000 / 10, missing_required);
    return driver;
}

} // namespace warmgraph::backends::cuda
