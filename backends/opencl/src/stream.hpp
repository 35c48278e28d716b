#pragma once

#include <map>
#include <unordered_map>

#include "core.hpp"
#include "warmgraph/backends/capture_session.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::opencl {

/// An in-order command queue that can also record (OpenCL has no stream capture).
class OpenclStream final : public Stream {
public:
    OpenclStream(Core& core, Queue queue);
    ~OpenclStream() override;
    OpenclStream(const OpenclStream&) = delete;
    OpenclStream& operator=(const OpenclStream&) = delete;

    [[nodiscard]] Result<void> launch(const RawKernel& kernel) override;
    [[nodiscard]] Result<void> copy(const RawCopy& copy) override;
    [[nodiscard]] Result<void> fill(const RawFill& fill) override;
    [[nodiscard]] Result<void> check(const RawWork& work) override;
    [[nodiscard]] Result<std::shared_ptr<Event>> record_event() override;
    [[nodiscard]] Result<void> wait(const std::shared_ptr<Event>& event) override;
    [[nodiscard]] Result<void> synchronize() override;
    [[nodiscard]] Result<void> begin_capture() override { return m_capture.begin(); }
    [[nodiscard]] Result<RawGraph> end_capture() override { return m_capture.end(); }
    [[nodiscard]] bool is_capturing() const noexcept override { return m_capture.is_active(); }

    [[nodiscard]] cl_command_queue queue() const noexcept { return m_queue.get(); }
    [[nodiscard]] const Core& core() const noexcept { return m_core; }

private:
    /// Returns the error; a capture stores it.
    [[nodiscard]] std::unexpected<Error> failed(Error error);
    [[nodiscard]] Result<cl_kernel> kernel_of(const RawKernel& work);

    Core& m_core;
    Queue m_queue;
    StreamCapture m_capture;
    /// This stream's own kernel objects, because setting arguments is not thread-safe. A kernel keeps its program
    /// alive, so no other program can get a key's handle.
    std::unordered_map<cl_program, std::map<std::string, Kernel>> m_kernels;
};

} // namespace warmgraph::backends::opencl
