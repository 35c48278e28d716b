// cl_khr_command_buffer, a provisional extension. Version 0.9.5 changed its signatures (a `properties` parameter in
// every recording call), so only earlier versions are used. The signatures are declared here, because the installed
// headers may have others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "driver.hpp"
#include "replay_node.hpp"

namespace warmgraph::backends::opencl {

/// The extension's entry points on one device. OpenCL-Docs, ext/cl_khr_command_buffer.asciidoc, 0.9.0 to 0.9.4.
struct CommandBufferApi {
    using Buffer = struct OpaqueCommandBuffer*;
    using SyncPoint = cl_uint;
    using Property = cl_ulong;

    cl_int (*finalize)(Buffer) = nullptr;
    cl_int (*release)(Buffer) = nullptr;
    cl_int (*enqueue)(cl_uint, cl_command_queue*, Buffer, cl_uint, const cl_event*, cl_event*) = nullptr;
    cl_int (*copy)(Buffer, cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint,
                   const SyncPoint*, SyncPoint*, void**) = nullptr;
    cl_int (*fill)(Buffer, cl_command_queue, cl_mem, const void*, std::size_t, std::size_t, std::size_t, cl_uint,
                   const SyncPoint*, SyncPoint*, void**) = nullptr;
    cl_int (*kernel)(Buffer, cl_command_queue, const Property*, cl_kernel, cl_uint, const std::size_t*,
                     const std::size_t*, const std::size_t*, cl_uint, const SyncPoint*, SyncPoint*, void**) = nullptr;
    Buffer (*create)(cl_uint, const cl_command_queue*, const Property*, cl_int*) = nullptr;
    bool is_simultaneous = false; ///< a buffer may be enqueued again while it runs
};

/// A device's support for the extension.
struct CommandBufferSupport {
    std::string version;                 ///< "0.9.0"; empty: no support
    std::optional<CommandBufferApi> api; ///< empty also for an unknown version
};
[[nodiscard]] CommandBufferSupport find_command_buffers(cl_platform_id platform, cl_device_id device);

/// A recorded sequence of nodes.
class CommandBuffer {
public:
    /// Records copies of the nodes' arguments (if the driver follows the specification). `queue` is any in-order queue.
    [[nodiscard]] static Result<CommandBuffer> record(const CommandBufferApi& api, cl_command_queue queue,
                                                      std::span<const ReplayNode> nodes);
    CommandBuffer(CommandBuffer&& other) noexcept;
    CommandBuffer& operator=(CommandBuffer&& other) noexcept;
    ~CommandBuffer();

    /// Returns false, and enqueues nothing, if the buffer still runs and the device cannot run a buffer twice at the
    /// same time.
    [[nodiscard]] Result<bool> enqueue(cl_command_queue queue);

private:
    CommandBuffer(const CommandBufferApi& api, CommandBufferApi::Buffer buffer) noexcept : m_api(&api), m_buffer(buffer)
    {
    }
    [[nodiscard]] Result<void> add(const ReplayNode& node);

    const CommandBufferApi* m_api;
    CommandBufferApi::Buffer m_buffer;
    DriverEvent m_last; ///< event of the last launch; used only if !is_simultaneous
};

} // namespace warmgraph::backends::opencl
