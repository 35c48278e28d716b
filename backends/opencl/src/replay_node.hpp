// One node of an instantiated graph, prepared so that a launch computes and allocates nothing.
#pragma once

#include <span>

#include "kernel_launch.hpp"

namespace warmgraph::backends::opencl {

class ReplayNode {
public:
    [[nodiscard]] static Result<ReplayNode> make(const RawWork& work, const LaunchLimits& limits, Memory& memory);

    /// `event` may be null.
    [[nodiscard]] Result<void> enqueue(cl_command_queue queue, std::span<const cl_event> waits, cl_event* event) const;
    /// See GraphExec::update. Sets only changed arguments; after a failure the next update sets all.
    [[nodiscard]] Result<void> update(const RawWork& work, Memory& memory);

    /// The node's work, for recording a command buffer.
    [[nodiscard]] const RawWork& work() const noexcept { return m_work; }
    [[nodiscard]] cl_kernel kernel() const noexcept { return m_kernel.get(); }
    [[nodiscard]] const Geometry& geometry() const noexcept { return m_geometry; }
    [[nodiscard]] cl_mem source() const noexcept { return m_source; }
    [[nodiscard]] cl_mem destination() const noexcept { return m_destination; }

private:
    [[nodiscard]] Result<void> set_kernel(const RawKernel& work, Memory& memory);
    [[nodiscard]] Result<void> update_kernel(const RawKernel& work, Memory& memory);
    [[nodiscard]] Result<void> bind(const RawCopy& work, const Memory& memory);
    [[nodiscard]] Result<void> bind(const RawFill& work, const Memory& memory);

    RawWork m_work;
    Kernel m_kernel; ///< not shared (NOTES.md, "one kernel object for each node")
    Geometry m_geometry;
    cl_mem m_source = nullptr;
    cl_mem m_destination = nullptr;
    bool m_must_set_all = false; ///< an earlier update failed half way
};

} // namespace warmgraph::backends::opencl
