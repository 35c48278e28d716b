// Data that all objects of one device share. The device owns it and outlives all of them.
#pragma once

#include <optional>
#include <string>

#include "command_buffer.hpp"
#include "driver.hpp"
#include "kernel_launch.hpp"
#include "memory.hpp"

namespace warmgraph::backends::opencl {

enum class ReplayMode { enqueue, command_buffer };

struct ReplayChoice {
    ReplayMode mode = ReplayMode::enqueue;
    std::string reason; ///< "re-enqueue (cl_khr_command_buffer 0.9.0 is slower on PoCL)"
};

struct Core {
    Core(cl_device_id id, Context made, std::uint32_t alignment)
        : device(id), context(std::move(made)), memory(context.get(), alignment)
    {
    }

    [[nodiscard]] Result<Queue> create_queue() const
    {
        return create<Queue>("clCreateCommandQueue", driver().clCreateCommandQueue, context.get(), device,
                             cl_command_queue_properties{0});
    }

    cl_device_id device;
    Context context;
    Memory memory;
    LaunchLimits limits;
    std::optional<CommandBufferApi> command_buffers; ///< set if the device has a known version
    ReplayChoice replay;
};

} // namespace warmgraph::backends::opencl
