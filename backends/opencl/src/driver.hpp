// The OpenCL loader, found at run time, and the only way to call it. Errors name the call and the error code.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CL/cl.h>

#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::opencl {

// Functions of OpenCL 1.2, which every loader has.
#define WARMGRAPH_OPENCL_FUNCTIONS(X)                                                                                  \
    X(clGetPlatformIDs)                                                                                                \
    X(clGetPlatformInfo)                                                                                               \
    X(clGetExtensionFunctionAddressForPlatform)                                                                        \
    X(clGetDeviceIDs)                                                                                                  \
    X(clGetDeviceInfo)                                                                                                 \
    X(clCreateContext)                                                                                                 \
    X(clReleaseContext)                                                                                                \
    X(clCreateCommandQueue)                                                                                            \
    X(clReleaseCommandQueue)                                                                                           \
    X(clFlush)                                                                                                         \
    X(clFinish)                                                                                                        \
    X(clCreateBuffer)                                                                                                  \
    X(clCreateSubBuffer)                                                                                               \
    X(clReleaseMemObject)                                                                                              \
    X(clEnqueueReadBuffer)                                                                                             \
    X(clEnqueueWriteBuffer)                                                                                            \
    X(clEnqueueCopyBuffer)                                                                                             \
    X(clEnqueueFillBuffer)                                                                                             \
    X(clEnqueueNDRangeKernel)                                                                                          \
    X(clEnqueueMarkerWithWaitList)                                                                                     \
    X(clEnqueueBarrierWithWaitList)                                                                                    \
    X(clCreateProgramWithSource)                                                                                       \
    X(clCreateProgramWithBinary)                                                                                       \
    X(clBuildProgram)                                                                                                  \
    X(clGetProgramInfo)                                                                                                \
    X(clGetProgramBuildInfo)                                                                                           \
    X(clReleaseProgram)                                                                                                \
    X(clCreateKernel)                                                                                                  \
    X(clGetKernelInfo)                                                                                                 \
    X(clGetKernelWorkGroupInfo)                                                                                        \
    X(clSetKernelArg)                                                                                                  \
    X(clReleaseKernel)                                                                                                 \
    X(clGetEventInfo)                                                                                                  \
    X(clSetEventCallback)                                                                                              \
    X(clReleaseEvent)

/// Entry points by name.
struct Driver {
    // NOLINTBEGIN(bugprone-macro-parentheses,readability-identifier-naming): the loader's names
#define WARMGRAPH_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
    WARMGRAPH_OPENCL_FUNCTIONS(WARMGRAPH_OPENCL_MEMBER)
#undef WARMGRAPH_OPENCL_MEMBER
    // NOLINTEND(bugprone-macro-parentheses,readability-identifier-naming)
};

/// Opens $WARMGRAPH_OPENCL, else libOpenCL.so.1, once in a process. The library is never closed, because its drivers
/// have threads and exit handlers. Thread-safe. not_found: no loader; unsupported: the loader lacks a function; both
/// with the cure. After an error the next call tries again.
[[nodiscard]] Result<void> load_driver();

namespace detail {
extern Driver loaded_driver; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): written once, by load_driver
} // namespace detail

/// REQUIRES: load_driver() succeeded.
[[nodiscard]] inline const Driver& driver() noexcept { return detail::loaded_driver; }

/// Returns e.g. "CL_OUT_OF_RESOURCES"; "OpenCL error -9999" for an unknown code.
[[nodiscard]] std::string error_name(cl_int code);
[[nodiscard]] std::unexpected<Error> driver_error(std::string_view text, cl_int code);
/// Returns nullptr if the platform lacks the function.
[[nodiscard]] void* extension_function(cl_platform_id platform, const char* name) noexcept;

/// Calls the driver. Example: `call("clFinish", driver().clFinish, queue)`.
template <class Function, class... Args>
[[nodiscard]] Result<void> call(std::string_view text, Function function, Args... args)
{
    const cl_int code = function(args...);
    if (code != CL_SUCCESS) [[unlikely]]
        return driver_error(text, code);
    return {};
}

/// An owned driver object.
template <class T, cl_int (*Driver::*Release)(T)>
class Handle {
public:
    Handle() = default;
    explicit Handle(T object) noexcept : m_object(object) {}
    Handle(Handle&& other) noexcept : m_object(std::exchange(other.m_object, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept
    {
        std::swap(m_object, other.m_object);
        return *this;
    }
    ~Handle()
    {
        if (m_object != nullptr) (driver().*Release)(m_object);
    }
    [[nodiscard]] T get() const noexcept { return m_object; }
    explicit operator bool() const noexcept { return m_object != nullptr; }

private:
    T m_object = nullptr;
};

using Context = Handle<cl_context, &Driver::clReleaseContext>;
using Queue = Handle<cl_command_queue, &Driver::clReleaseCommandQueue>;
using Buffer = Handle<cl_mem, &Driver::clReleaseMemObject>;
using Program = Handle<cl_program, &Driver::clReleaseProgram>;
using Kernel = Handle<cl_kernel, &Driver::clReleaseKernel>;
using DriverEvent = Handle<cl_event, &Driver::clReleaseEvent>;

/// For calls that return an object, and an error through their last argument: `create<Queue>("clCreateCommandQueue",
/// driver().clCreateCommandQueue, context, device, properties)`.
template <class Object, class Function, class... Args>
[[nodiscard]] Result<Object> create(std::string_view text, Function function, Args... args)
{
    cl_int code = CL_SUCCESS;
    Object object(function(args..., &code));
    if (code != CL_SUCCESS) return driver_error(text, code);
    return object;
}

/// A query for a value of fixed size: `query<cl_uint>("clGetDeviceInfo", driver().clGetDeviceInfo, device, CL_DEVICE_...)`.
template <class T, class Function, class... Args>
[[nodiscard]] Result<T> query(std::string_view text, Function function, Args... args)
{
    T value{};
    if (auto asked = call(text, function, args..., sizeof value, &value, nullptr); !asked)
        return std::unexpected(asked.error());
    return value;
}

template <class T, class Function, class... Args>
[[nodiscard]] Result<std::vector<T>> query_list(std::string_view text, Function function, Args... args)
{
    std::size_t size = 0;
    if (auto asked = call(text, function, args..., std::size_t{0}, nullptr, &size); !asked)
        return std::unexpected(asked.error());
    std::vector<T> list(size / sizeof(T));
    if (size == 0) return list;
    if (auto asked = call(text, function, args..., size, list.data(), nullptr); !asked)
        return std::unexpected(asked.error());
    return list;
}

/// Returns the text without its terminating zero.
template <class Function, class... Args>
[[nodiscard]] Result<std::string> query_text(std::string_view text, Function function, Args... args)
{
    const auto letters = query_list<char>(text, function, args...);
    if (!letters) return std::unexpected(letters.error());
    return std::string(letters->begin(), std::find(letters->begin(), letters->end(), '\0'));
}

} // namespace warmgraph::backends::opencl
