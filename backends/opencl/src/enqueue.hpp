// Puts commands into a queue. `waits` may be empty, `event` may be null.
#pragma once

#include <span>

#include "kernel_launch.hpp"

namespace warmgraph::backends::opencl {

using Waits = std::span<const cl_event>;

inline cl_uint count_of(Waits waits) noexcept { return static_cast<cl_uint>(waits.size()); }
inline const cl_event* list_of(Waits waits) noexcept { return waits.empty() ? nullptr : waits.data(); }

[[nodiscard]] inline Result<void> enqueue_kernel(cl_command_queue queue, cl_kernel kernel, const Geometry& geometry,
                                                 Waits waits = {}, cl_event* event = nullptr)
{
    return call("clEnqueueNDRangeKernel", driver().clEnqueueNDRangeKernel, queue, kernel, geometry.dimensions, nullptr,
                geometry.global.data(), geometry.local.data(), count_of(waits), list_of(waits), event);
}

[[nodiscard]] inline Result<void> enqueue_copy(cl_command_queue queue, cl_mem source, cl_mem destination,
                                               const RawCopy& work, Waits waits = {}, cl_event* event = nullptr)
{
    return call("clEnqueueCopyBuffer", driver().clEnqueueCopyBuffer, queue, source, destination, work.source.offset,
                work.destination.offset, work.size, count_of(waits), list_of(waits), event);
}

[[nodiscard]] inline Result<void> enqueue_fill(cl_command_queue queue, cl_mem destination, const RawFill& work,
                                               Waits waits = {}, cl_event* event = nullptr)
{
    return call("clEnqueueFillBuffer", driver().clEnqueueFillBuffer, queue, destination,
                static_cast<const void*>(work.pattern.data()), work.pattern.size(), work.destination.offset, work.size,
                count_of(waits), list_of(waits), event);
}

/// Makes later work of the queue wait for `waits`. `event` completes after these and all earlier work.
[[nodiscard]] inline Result<void> enqueue_barrier(cl_command_queue queue, Waits waits, cl_event* event = nullptr)
{
    return call("clEnqueueBarrierWithWaitList", driver().clEnqueueBarrierWithWaitList, queue, count_of(waits),
                list_of(waits), event);
}

[[nodiscard]] inline Result<DriverEvent> enqueue_marker(cl_command_queue queue)
{
    cl_event event = nullptr;
    auto enqueued =
        call("clEnqueueMarkerWithWaitList", driver().clEnqueueMarkerWithWaitList, queue, cl_uint{0}, nullptr, &event);
    if (!enqueued) return std::unexpected(enqueued.error());
    return DriverEvent(event);
}

} // namespace warmgraph::backends::opencl
