#include "driver.hpp"

#include <array>
#include <mutex>

#include <CL/cl_ext.h>

#include <dlfcn.h>

#include "warmgraph/base/process.hpp"

namespace warmgraph::backends::opencl {
namespace {

struct Code {
    cl_int code;
    std::string_view name;
    ErrorCode meaning;
};

// OpenCL 3.0 specification, appendix "Error Codes"; -1001 and the command buffer's codes are from their extensions.
constexpr std::array k_codes{
    Code{-1, "CL_DEVICE_NOT_FOUND", ErrorCode::not_found},
    Code{-2, "CL_DEVICE_NOT_AVAILABLE", ErrorCode::driver_failed},
    Code{-3, "CL_COMPILER_NOT_AVAILABLE", ErrorCode::unsupported},
    Code{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", ErrorCode::out_of_memory},
    Code{-5, "CL_OUT_OF_RESOURCES", ErrorCode::out_of_memory},
    Code{-6, "CL_OUT_OF_HOST_MEMORY", ErrorCode::out_of_memory},
    Code{-7, "CL_PROFILING_INFO_NOT_AVAILABLE", ErrorCode::driver_failed},
    Code{-8, "CL_MEM_COPY_OVERLAP", ErrorCode::invalid_argument},
    Code{-11, "CL_BUILD_PROGRAM_FAILURE", ErrorCode::compile_failed},
    Code{-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET", ErrorCode::invalid_argument},
    Code{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", ErrorCode::driver_failed},
    Code{-15, "CL_COMPILE_PROGRAM_FAILURE", ErrorCode::compile_failed},
    Code{-16, "CL_LINKER_NOT_AVAILABLE", ErrorCode::unsupported},
    Code{-17, "CL_LINK_PROGRAM_FAILURE", ErrorCode::compile_failed},
    Code{-18, "CL_DEVICE_PARTITION_FAILED", ErrorCode::driver_failed},
    Code{-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE", ErrorCode::unsupported},
    Code{-30, "CL_INVALID_VALUE", ErrorCode::invalid_argument},
    Code{-32, "CL_INVALID_PLATFORM", ErrorCode::driver_failed},
    Code{-33, "CL_INVALID_DEVICE", ErrorCode::driver_failed},
    Code{-34, "CL_INVALID_CONTEXT", ErrorCode::driver_failed},
    Code{-35, "CL_INVALID_QUEUE_PROPERTIES", ErrorCode::driver_failed},
    Code{-36, "CL_INVALID_COMMAND_QUEUE", ErrorCode::driver_failed},
    Code{-38, "CL_INVALID_MEM_OBJECT", ErrorCode::invalid_argument},
    Code{-42, "CL_INVALID_BINARY", ErrorCode::stale},
    Code{-43, "CL_INVALID_BUILD_OPTIONS", ErrorCode::compile_failed},
    Code{-44, "CL_INVALID_PROGRAM", ErrorCode::driver_failed},
    Code{-45, "CL_INVALID_PROGRAM_EXECUTABLE", ErrorCode::driver_failed},
    Code{-46, "CL_INVALID_KERNEL_NAME", ErrorCode::not_found},
    Code{-48, "CL_INVALID_KERNEL", ErrorCode::driver_failed},
    Code{-49, "CL_INVALID_ARG_INDEX", ErrorCode::invalid_argument},
    Code{-50, "CL_INVALID_ARG_VALUE", ErrorCode::invalid_argument},
    Code{-51, "CL_INVALID_ARG_SIZE", ErrorCode::invalid_argument},
    Code{-52, "CL_INVALID_KERNEL_ARGS", ErrorCode::invalid_argument},
    Code{-53, "CL_INVALID_WORK_DIMENSION", ErrorCode::invalid_argument},
    Code{-54, "CL_INVALID_WORK_GROUP_SIZE", ErrorCode::invalid_argument},
    Code{-55, "CL_INVALID_WORK_ITEM_SIZE", ErrorCode::invalid_argument},
    Code{-56, "CL_INVALID_GLOBAL_OFFSET", ErrorCode::invalid_argument},
    Code{-57, "CL_INVALID_EVENT_WAIT_LIST", ErrorCode::driver_failed},
    Code{-58, "CL_INVALID_EVENT", ErrorCode::driver_failed},
    Code{-59, "CL_INVALID_OPERATION", ErrorCode::driver_failed},
    Code{-61, "CL_INVALID_BUFFER_SIZE", ErrorCode::out_of_memory},
    Code{-63, "CL_INVALID_GLOBAL_WORK_SIZE", ErrorCode::invalid_argument},
    Code{-64, "CL_INVALID_PROPERTY", ErrorCode::driver_failed},
    Code{-1001, "CL_PLATFORM_NOT_FOUND_KHR", ErrorCode::not_found},
    Code{-1138, "CL_INVALID_COMMAND_BUFFER_KHR", ErrorCode::driver_failed},
    Code{-1139, "CL_INVALID_SYNC_POINT_WAIT_LIST_KHR", ErrorCode::driver_failed},
    Code{-1140, "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR", ErrorCode::driver_failed},
};

const Code* find(cl_int code) noexcept
{
    const auto* const found = std::ranges::find(k_codes, code, &Code::code);
    return found == k_codes.end() ? nullptr : found;
}

Result<Driver> find_driver()
{
    const auto named = environment("WARMGRAPH_OPENCL");
    const std::string library = named && !named->empty() ? *named : "libOpenCL.so.1";
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const why = ::dlerror();
        return fail(ErrorCode::not_found,
                    "no OpenCL loader: {}; install ocl-icd-libopencl1 and a driver, e.g. pocl-opencl-icd, or name the "
                    "library in WARMGRAPH_OPENCL",
                    why != nullptr ? why : library.c_str());
    }
    Driver found;
    const char* missing = nullptr; // the first missing function
    const auto resolve = [&]<class Function>(const char* name, Function& target) {
        target = reinterpret_cast<Function>(::dlsym(handle, name));
        if (target == nullptr && missing == nullptr) missing = name;
    };
#define WARMGRAPH_OPENCL_RESOLVE(name) resolve(#name, found.name);
    WARMGRAPH_OPENCL_FUNCTIONS(WARMGRAPH_OPENCL_RESOLVE)
#undef WARMGRAPH_OPENCL_RESOLVE
    if (missing != nullptr)
        return fail(ErrorCode::unsupported, "the OpenCL loader {} has no {}, expected OpenCL 1.2 or newer: update it",
                    library, missing);
    return found;
}

} // namespace

Driver detail::loaded_driver; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

Result<void> load_driver()
{
    static std::mutex& mutex = *new std::mutex; // never destroyed: threads may outlive main()
    static bool is_loaded = false;
    const std::scoped_lock lock(mutex);
    if (is_loaded) return {};
    const auto found = find_driver();
    if (!found) return std::unexpected(found.error());
    detail::loaded_driver = *found;
    is_loaded = true;
    return {};
}

std::string error_name(cl_int code)
{
    const Code* const known = find(code);
    return known != nullptr ? std::string(known->name) : fmt::format("OpenCL error {}", code);
}

std::unexpected<Error> driver_error(std::string_view text, cl_int code)
{
    const Code* const known = find(code);
    return fail(known != nullptr ? known->meaning : ErrorCode::driver_failed, "{} gave {}", text, error_name(code));
}

void* extension_function(cl_platform_id platform, const char* name) noexcept
{
    return driver().clGetExtensionFunctionAddressForPlatform(platform, name);
}

} // namespace warmgraph::backends::opencl
