#pragma once

#include <memory>

#include "code/kernel_params.hpp"
#include "device/core.hpp"
#include "device/memory.hpp"
#include "warmgraph/backends/capture_session.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::cuda {

/// A CUevent, without timing.
class CudaEvent final : public Event {
public:
    enum class Kind : std::uint8_t {
        point,    ///< recorded once, by Stream::record_event
        external, ///< made for graphs, which record it and wait for it by its handle
    };
    [[nodiscard]] static Result<std::shared_ptr<CudaEvent>> make(const Core& core, Kind kind);
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;
    ~CudaEvent() override;
    [[nodiscard]] std::uint64_t native() const noexcept override { return reinterpret_cast<std::uintptr_t>(m_event); }

    [[nodiscard]] Result<bool> is_done() override;

    [[nodiscard]] CUevent handle() const noexcept { return m_event; }
    [[nodiscard]] const Core& core() const noexcept { return m_core; }
    [[nodiscard]] Kind kind() const noexcept { return m_kind; }
    /// Set if the event was recorded in a capture of this backend.
    std::optional<CapturedPoint> point;

private:
    CudaEvent(const Core& core, CUevent event, Kind kind) noexcept : m_core(core), m_event(event), m_kind(kind) {}

    const Core& m_core;
    CUevent m_event;
    Kind m_kind;
};

/// A CUstream that does not wait for the legacy stream. The driver captures; StreamCapture also notes the members of
/// the capture and the first failure, because the driver only reports that a capture is broken.
class CudaStream final : public Stream {
public:
    [[nodiscard]] static Result<std::unique_ptr<Stream>> make(Core& core, Memory& memory);
    /// Wraps a stream that other code made and will destroy.
    [[nodiscard]] static std::unique_ptr<Stream> view(Core& core, Memory& memory, CUstream stream);
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;
    ~CudaStream() override;

    [[nodiscard]] Result<void> launch(const RawKernel& kernel) override;
    [[nodiscard]] Result<void> copy(const RawCopy& copy) override;
    [[nodiscard]] Result<void> fill(const RawFill& fill) override;
    [[nodiscard]] Result<void> check(const RawWork& work) override;
    [[nodiscard]] Result<void> enqueue_checked(const RawWork& work) override;
    [[nodiscard]] Result<std::shared_ptr<Event>> record_event() override;
    [[nodiscard]] Result<void> wait(const std::shared_ptr<Event>& event) override;
    [[nodiscard]] Result<void> synchronize() override;
    [[nodiscard]] Result<void> begin_capture() override;
    [[nodiscard]] Result<RawGraph> end_capture() override;
    /// True also if an event of other code made it join a capture.
    [[nodiscard]] bool is_capturing() const noexcept override;
    [[nodiscard]] void* native() const noexcept override { return m_stream; }
    [[nodiscard]] std::shared_ptr<void> allow_first_run() override { return std::make_shared<OutsideCapture>(m_core); }

    [[nodiscard]] CUstream handle() const noexcept { return m_stream; }
    [[nodiscard]] const Core& core() const noexcept { return m_core; }

private:
    enum class Owned : std::uint8_t { no, yes };
    CudaStream(Core& core, Memory& memory, CUstream stream, Owned owned) noexcept
        : m_core(core), m_memory(memory), m_stream(stream), m_owned(owned)
    {
    }
    [[nodiscard]] bool driver_captures() const noexcept;
    [[nodiscard]] Touch touch() const noexcept { return is_capturing() ? Touch::record : Touch::run; }
    /// Returns `done`. If it is a failure, an active capture stores it.
    [[nodiscard]] Result<void> noted(Result<void> done);

    Core& m_core;
    Memory& m_memory;
    CUstream m_stream;
    Owned m_owned;
    StreamCapture m_capture;
    KernelParams m_params; ///< parameters of the kernel that is being enqueued
    bool m_began = false;  ///< this stream began the capture of m_capture
};

} // namespace warmgraph::backends::cuda
