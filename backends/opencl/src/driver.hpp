// The one door to the OpenCL driver: every call keeps its text, every failure its error name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CL/cl.h>

#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::opencl {

/// "CL_OUT_OF_RESOURCES"; "OpenCL error -9999" for a code that no specification names.
[[nodiscard]] std::string error_name(cl_int code);
[[nodiscard]] std::unexpected<Error> driver_error(std::string_view text, cl_int code);
/// nullptr where the platform has no such function.
[[nodiscard]] void* extension_function(cl_platform_id platform, const char* name) noexcept;

/// `call("clFinish", clFinish, queue)`
template <class Function, class... Args>
[[nodiscard]] Result<void> call(std::string_view text, Function function, Args... args)
{
    const cl_int code = function(args...);
    if (code != CL_SUCCESS) [[unlikely]]
        return driver_error(text, code);
    return {};
}

/// An owned driver object.
template <class T, cl_int (*Release)(T)>
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
        if (m_object != nullptr) Release(m_object);
    }
    [[nodiscard]] T get() const noexcept { return m_object; }
    explicit operator bool() const noexcept { return m_object != nullptr; }

private:
    T m_object = nullptr;
};

using Context = Handle<cl_context, clReleaseContext>;
using Queue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Buffer = Handle<cl_mem, clReleaseMemObject>;
using Program = Handle<cl_program, clReleaseProgram>;
using Kernel = Handle<cl_kernel, clReleaseKernel>;
using DriverEvent = Handle<cl_event, clReleaseEvent>;

/// `create<Queue>("clCreateCommandQueue", clCreateCommandQueue, context, device, properties)`: calls that give back an
/// object and an error through their last argument.
template <class Object, class Function, class... Args>
[[nodiscard]] Result<Object> create(std::string_view text, Function function, Args... args)
{
    cl_int code = CL_SUCCESS;
    Object object(function(args..., &code));
    if (code != CL_SUCCESS) return driver_error(text, code);
    return object;
}

/// A query for a value of fixed size: `query<cl_uint>("clGetDeviceInfo", clGetDeviceInfo, device, CL_DEVICE_...)`.
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

/// Without the terminating zero.
template <class Function, class... Args>
[[nodiscard]] Result<std::string> query_text(std::string_view text, Function function, Args... args)
{
    const auto letters = query_list<char>(text, function, args...);
    if (!letters) return std::unexpected(letters.error());
    return std::string(letters->begin(), std::find(letters->begin(), letters->end(), '\0'));
}

} // namespace warmgraph::backends::opencl
