#include "device/stream.hpp"

#include "device/enqueue.hpp"
#include "graph/graph_builder.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {
namespace {

/// Explains why the driver gave no graph although none of our calls failed.
Error broken_capture(const Driver& driver, CUresult status)
{
    const std::string text = driver.error("cuStreamEndCapture", status).message;
    switch (status) {
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
        return {
            ErrorCode::not_recordable,
            fmt::format("a forked stream was not joined; record an event in the forked stream and wait for it in the "
                        "stream that captures: {}",
                        text)};
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
        return {ErrorCode::not_recordable, fmt::format("a capture must end in the thread that began it: {}", text)};
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
        return {
            ErrorCode::not_recordable,
            fmt::format("the function did something that a capture cannot hold (synchronised, allocated, or used the "
                        "legacy stream); move it out of the function: {}",
                        text)};
    default: return driver.error("cuStreamEndCapture", status);
    }
}

/// A graph that may outlive the device, and is then only destroyed.
struct GraphAndDriver {
    GraphAndDriver(std::shared_ptr<const Driver> of, NativeGraph kept) : driver(std::move(of)), graph(std::move(kept))
    {
    }
    std::shared_ptr<const Driver> driver; ///< destroyed after the graph
    NativeGraph graph;
};

} // namespace

Result<std::shared_ptr<CudaEvent>> CudaEvent::make(const Core& core, Kind kind)
{
    const CurrentContext context(core);
    CUevent event = nullptr;
    constexpr unsigned k_flags = CU_EVENT_DISABLE_TIMING;
    auto made = core.driver->call("cuEventCreate", core.driver->cuEventCreate, &event, k_flags);
    if (!made) return std::unexpected(made.error());
    return std::shared_ptr<CudaEvent>(new CudaEvent(core, event, kind));
}

CudaEvent::~CudaEvent()
{
    const CurrentContext context(m_core);
    if (auto destroyed = m_core.driver->call("cuEventDestroy", m_core.driver->cuEventDestroy, m_event); !destroyed)
        log().warn("cannot destroy an event: {}", destroyed.error().message);
}

Result<bool> CudaEvent::is_done()
{
    // Do not ask the driver: if the capture is still active, the question would break it.
    if (point)
        return fail(
            ErrorCode::not_recordable,
            "an event that was recorded in a capture is never done: the work before it is recorded, and does not run");
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const Driver& driver = *m_core.driver;
    const CUresult status = driver.status("cuEventQuery", driver.cuEventQuery, m_event);
    if (status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_READY) return status == CUDA_SUCCESS;
    return std::unexpected(driver.error("cuEventQuery", status));
}

Result<std::unique_ptr<Stream>> CudaStream::make(Core& core, Memory& memory)
{
    const CurrentContext context(core);
    const OutsideCapture outside(core);
    CUstream stream = nullptr;
    constexpr unsigned k_flags = CU_STREAM_NON_BLOCKING;
    auto made = core.driver->call("cuStreamCreate", core.driver->cuStreamCreate, &stream, k_flags);
    if (!made) return std::unexpected(made.error());
    return std::unique_ptr<Stream>(new CudaStream(core, memory, stream, Owned::yes));
}

std::unique_ptr<Stream> CudaStream::view(Core& core, Memory& memory, CUstream stream)
{
    // A null handle here would look like another device's stream, so use CU_STREAM_LEGACY, the same stream.
    return std::unique_ptr<Stream>(
        new CudaStream(core, memory, stream != nullptr ? stream : CU_STREAM_LEGACY, Owned::no));
}

CudaStream::~CudaStream()
{
    const Driver& driver = *m_core.driver;
    // NOLINTNEXTLINE(bugprone-unused-return-value): a destructor cannot report it
    if (m_began && m_capture.is_active()) static_cast<void>(end_capture());
    if (m_owned == Owned::no) return; // the caller may have destroyed the stream
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    // A failure is only logged: callers check their work with synchronize().
    auto done = driver.call("cuStreamSynchronize", driver.cuStreamSynchronize, m_stream);
    if (!done) log().warn("cannot wait for a stream before it is destroyed: {}", done.error().message);
    auto destroyed = driver.call("cuStreamDestroy", driver.cuStreamDestroy, m_stream);
    if (!destroyed) log().warn("cannot destroy a stream: {}", destroyed.error().message);
}

Result<void> CudaStream::noted(Result<void> done)
{
    if (!done && m_capture.is_active()) return m_capture.failed(std::move(done.error()));
    return done;
}

Result<void> CudaStream::launch(const RawKernel& work)
{
    const auto info = check_launch(work, m_core, m_memory, touch());
    if (!info) return noted(std::unexpected(info.error()));
    const CurrentContext context(m_core);
    if (auto prepared = prepare_kernel(m_core, **info, work); !prepared) return noted(std::move(prepared));
    return noted(enqueue_kernel(m_core, m_stream, **info, work, m_params));
}

Result<void> CudaStream::copy(const RawCopy& work)
{
    if (auto checked = check_copy(work, m_memory, touch()); !checked) return noted(std::move(checked));
    const CurrentContext context(m_core);
    return noted(enqueue_copy(m_core, m_stream, work));
}

Result<void> CudaStream::fill(const RawFill& work)
{
    if (auto checked = check_fill(work, m_memory, touch()); !checked) return noted(std::move(checked));
    const CurrentContext context(m_core);
    return noted(enqueue_fill(m_core, m_stream, work));
}

Result<void> CudaStream::check(const RawWork& work)
{
    if (const auto* const kernel = std::get_if<RawKernel>(&work)) {
        const auto info = check_launch(*kernel, m_core, m_memory, Touch::run);
        if (!info) return std::unexpected(info.error());
        return prepare_kernel(m_core, **info, *kernel);
    }
    if (const auto* const copied = std::get_if<RawCopy>(&work)) return check_copy(*copied, m_memory, Touch::run);
    if (const auto* const filled = std::get_if<RawFill>(&work)) return check_fill(*filled, m_memory, Touch::run);
    return Stream::check(work);
}

Result<void> CudaStream::enqueue_checked(const RawWork& work)
{
    const CurrentContext context(m_core);
    if (const auto* const kernel = std::get_if<RawKernel>(&work)) {
        const auto info = info_of(*kernel);
        return info ? enqueue_kernel(m_core, m_stream, **info, *kernel, m_params) : std::unexpected(info.error());
    }
    if (const auto* const copied = std::get_if<RawCopy>(&work)) return enqueue_copy(m_core, m_stream, *copied);
    if (const auto* const filled = std::get_if<RawFill>(&work)) return enqueue_fill(m_core, m_stream, *filled);
    return Stream::enqueue_checked(work);
}

Result<std::shared_ptr<Event>> CudaStream::record_event()
{
    const CurrentContext context(m_core);
    auto event = CudaEvent::make(m_core, CudaEvent::Kind::point);
    auto recorded =
        event ? m_core.driver->call("cuEventRecord", m_core.driver->cuEventRecord, (*event)->handle(), m_stream)
              : Result<void>(std::unexpected(event.error()));
    if (!recorded) return std::unexpected(noted(std::move(recorded)).error());
    if (m_capture.is_active()) (*event)->point = m_capture.point();
    return *event;
}

Result<void> CudaStream::wait(const std::shared_ptr<Event>& event)
{
    const auto* const ours = dynamic_cast<const CudaEvent*>(event.get());
    if (ours == nullptr || &ours->core() != &m_core)
        return noted(fail(ErrorCode::invalid_argument, "wait for an event that is null or of another device"));
    unsigned flags = CU_EVENT_WAIT_DEFAULT;
    if (ours->point) {
        if (auto joined = m_capture.wait(*ours->point); !joined) return joined;
    } else if (m_capture.is_active()) {
        if (ours->kind() == CudaEvent::Kind::point)
            return m_capture.refuse("wait for an event that was recorded outside the capture");
        flags = CU_EVENT_WAIT_EXTERNAL;
    }
    const CurrentContext context(m_core);
    return noted(
        m_core.driver->call("cuStreamWaitEvent", m_core.driver->cuStreamWaitEvent, m_stream, ours->handle(), flags));
}

Result<void> CudaStream::synchronize()
{
    if (m_capture.is_active()) return m_capture.refuse("synchronize");
    if (driver_captures())
        return fail(ErrorCode::not_recordable, "synchronize cannot be recorded; move it out of the captured function");
    const CurrentContext context(m_core);
    return m_core.driver->call("cuStreamSynchronize", m_core.driver->cuStreamSynchronize, m_stream);
}

bool CudaStream::driver_captures() const noexcept
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult asked =
        m_core.driver->status("cuStreamIsCapturing", m_core.driver->cuStreamIsCapturing, m_stream, &status);
    return asked == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool CudaStream::is_capturing() const noexcept { return m_capture.is_active() || driver_captures(); }

Result<void> CudaStream::begin_capture()
{
    if (m_capture.is_active()) return m_capture.begin(); // fails, and marks the capture as failed
    if (driver_captures())
        return fail(ErrorCode::not_recordable, "begin_capture of a stream that is already being captured");
    if (m_core.recording_side == nullptr)
        return fail(ErrorCode::unsupported,
                    "this library only replays, and captures nothing: record with libwarmgraph");
    const CurrentContext context(m_core);
    // Thread-local mode: other threads may allocate meanwhile.
    auto begun = m_core.driver->call("cuStreamBeginCapture", m_core.driver->cuStreamBeginCapture, m_stream,
                                     CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (!begun) return begun;
    m_began = true;
    return m_capture.begin();
}

Result<RawGraph> CudaStream::end_capture()
{
    if (!m_began || !m_capture.is_active()) return m_capture.end(); // returns the right error
    m_began = false;
    const CurrentContext context(m_core);
    const Driver& driver = *m_core.driver;
    NativeGraph graph(driver);
    const CUresult status = driver.status("cuStreamEndCapture", driver.cuStreamEndCapture, m_stream, graph.out());
    // Our own first failure says more than the driver's "capture is broken".
    if (auto ours = m_capture.end(); !ours) return ours;
    if (status != CUDA_SUCCESS) return std::unexpected(broken_capture(driver, status));
    if (graph.get() == nullptr)
        return fail(ErrorCode::not_recordable,
                    "the driver returned no graph for the capture: another call has invalidated the capture");
    auto read = m_core.recording_side->read_captured(m_core, graph.get());
    if (!read) return read;
    const auto kept = std::make_shared<const GraphAndDriver>(m_core.driver, std::move(graph));
    read->native = {kept, kept->graph.get()};
    // Keep the graph: otherwise the next capture could get the same addresses for its allocations.
    if (!read->allocations.empty()) read->owner = kept;
    return read;
}

} // namespace warmgraph::backends::cuda
