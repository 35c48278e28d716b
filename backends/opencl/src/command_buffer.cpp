#include "command_buffer.hpp"

#include <string_view>

#include <CL/cl_ext.h>

namespace warmgraph::backends::opencl {
namespace {

constexpr std::string_view k_extension = "cl_khr_command_buffer";
constexpr cl_version k_first_version = CL_MAKE_VERSION(0, 9, 0);
constexpr cl_version k_last_version = CL_MAKE_VERSION(0, 9, 4);

// Values of the extension, 0.9.0. The installed headers may use other names.
constexpr cl_device_info k_capabilities = 0x12A9;
constexpr cl_bitfield k_capability_simultaneous = 1 << 2;
constexpr CommandBufferApi::Property k_flags = 0x1293;
constexpr CommandBufferApi::Property k_flag_simultaneous = 1 << 0;

std::optional<cl_version> version_on(cl_device_id device)
{
    const auto list = query_list<cl_name_version>("clGetDeviceInfo", driver().clGetDeviceInfo, device,
                                                  cl_device_info{CL_DEVICE_EXTENSIONS_WITH_VERSION});
    if (!list) return std::nullopt;
    for (const cl_name_version& extension : *list) {
        if (extension.name == k_extension) return extension.version;
    }
    return std::nullopt;
}

template <class Function>
bool resolve(cl_platform_id platform, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(extension_function(platform, name));
    return function != nullptr;
}

std::optional<CommandBufferApi> load_api(cl_platform_id platform, cl_device_id device)
{
    CommandBufferApi api;
    const bool is_complete = resolve(platform, "clCreateCommandBufferKHR", api.create) &&
                             resolve(platform, "clFinalizeCommandBufferKHR", api.finalize) &&
                             resolve(platform, "clReleaseCommandBufferKHR", api.release) &&
                             resolve(platform, "clEnqueueCommandBufferKHR", api.enqueue) &&
                             resolve(platform, "clCommandCopyBufferKHR", api.copy) &&
                             resolve(platform, "clCommandFillBufferKHR", api.fill) &&
                             resolve(platform, "clCommandNDRangeKernelKHR", api.kernel);
    if (!is_complete) return std::nullopt;
    const auto capabilities = query<cl_bitfield>("clGetDeviceInfo", driver().clGetDeviceInfo, device, k_capabilities);
    api.is_simultaneous = capabilities && (*capabilities & k_capability_simultaneous) != 0;
    return api;
}

} // namespace

CommandBufferSupport find_command_buffers(cl_platform_id platform, cl_device_id device)
{
    const auto version = version_on(device);
    if (!version) return {};
    CommandBufferSupport support{
        fmt::format("{}.{}.{}", CL_VERSION_MAJOR(*version), CL_VERSION_MINOR(*version), CL_VERSION_PATCH(*version)),
        {}};
    if (*version >= k_first_version && *version <= k_last_version) support.api = load_api(platform, device);
    return support;
}

Result<CommandBuffer> CommandBuffer::record(const CommandBufferApi& api, cl_command_queue queue,
                                            std::span<const ReplayNode> nodes)
{
    const CommandBufferApi::Property simultaneous[] = {k_flags, k_flag_simultaneous, 0};
    cl_int code = CL_SUCCESS;
    CommandBuffer buffer(api, api.create(1, &queue, api.is_simultaneous ? simultaneous : nullptr, &code));
    if (code != CL_SUCCESS) return driver_error("clCreateCommandBufferKHR", code);
    for (const ReplayNode& node : nodes) {
        if (auto added = buffer.add(node); !added) return std::unexpected(added.error());
    }
    if (auto finalized = call("clFinalizeCommandBufferKHR", api.finalize, buffer.m_buffer); !finalized)
        return std::unexpected(finalized.error());
    return buffer;
}

Result<void> CommandBuffer::add(const ReplayNode& node)
{
    const cl_command_queue only_queue = nullptr; // the extension requires null if there is one queue
    if (std::holds_alternative<RawKernel>(node.work())) {
        const Geometry& geometry = node.geometry();
        return call("clCommandNDRangeKernelKHR", m_api->kernel, m_buffer, only_queue, nullptr, node.kernel(),
                    geometry.dimensions, nullptr, geometry.global.data(), geometry.local.data(), cl_uint{0}, nullptr,
                    nullptr, nullptr);
    }
    if (const auto* copy = std::get_if<RawCopy>(&node.work())) {
        return call("clCommandCopyBufferKHR", m_api->copy, m_buffer, only_queue, node.source(), node.destination(),
                    copy->source.offset, copy->destination.offset, copy->size, cl_uint{0}, nullptr, nullptr, nullptr);
    }
    if (const auto* fill = std::get_if<RawFill>(&node.work())) {
        return call("clCommandFillBufferKHR", m_api->fill, m_buffer, only_queue, node.destination(),
                    static_cast<const void*>(fill->pattern.data()), fill->pattern.size(), fill->destination.offset,
                    fill->size, cl_uint{0}, nullptr, nullptr, nullptr);
    }
    return {};
}

CommandBuffer::CommandBuffer(CommandBuffer&& other) noexcept
    : m_api(other.m_api), m_buffer(std::exchange(other.m_buffer, nullptr)), m_last(std::move(other.m_last))
{
}

CommandBuffer& CommandBuffer::operator=(CommandBuffer&& other) noexcept
{
    std::swap(m_api, other.m_api);
    std::swap(m_buffer, other.m_buffer);
    std::swap(m_last, other.m_last);
    return *this;
}

CommandBuffer::~CommandBuffer()
{
    if (m_buffer != nullptr) m_api->release(m_buffer);
}

Result<bool> CommandBuffer::enqueue(cl_command_queue queue)
{
    if (m_api->is_simultaneous) {
        auto enqueued = call("clEnqueueCommandBufferKHR", m_api->enqueue, cl_uint{1}, &queue, m_buffer, cl_uint{0},
                             nullptr, nullptr);
        if (!enqueued) return std::unexpected(enqueued.error());
        return true;
    }
    if (m_last) {
        const auto status = query<cl_int>("clGetEventInfo", driver().clGetEventInfo, m_last.get(),
                                          cl_event_info{CL_EVENT_COMMAND_EXECUTION_STATUS});
        if (!status) return std::unexpected(status.error());
        if (*status > CL_COMPLETE) return false;
    }
    cl_event event = nullptr;
    const cl_int code = m_api->enqueue(1, &queue, m_buffer, 0, nullptr, &event);
    // The buffer has finished, but PoCL signals that before it allows another launch (its pull request 2306).
    if (code == CL_INVALID_OPERATION) return false;
    if (code != CL_SUCCESS) return driver_error("clEnqueueCommandBufferKHR", code);
    m_last = DriverEvent(event);
    return true;
}

} // namespace warmgraph::backends::opencl
