#include "stream.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <new>

#include "enqueue.hpp"
#include "live_queues.hpp"

namespace warmgraph::backends::opencl {
namespace {

/// The time when the work before an event finished; 0: not yet. The callback keeps it alive.
using Moment = std::atomic<std::chrono::steady_clock::rep>;

void CL_CALLBACK note_moment(cl_event, cl_int, void* moment) noexcept
{
    const std::unique_ptr<std::shared_ptr<Moment>> kept(static_cast<std::shared_ptr<Moment>*>(moment));
    (*kept)->store(std::chrono::steady_clock::now().time_since_epoch().count());
}

struct OpenclEvent final : Event {
    OpenclEvent(const Core& made_on, DriverEvent made) : core(&made_on), event(std::move(made)) {}
    OpenclEvent(const Core& made_on, CapturedPoint captured) : core(&made_on), point(std::move(captured)) {}

    Result<bool> is_done() override
    {
        if (point)
            return fail(ErrorCode::not_recordable, "an event that was recorded in a capture is never done: the work "
                                                   "before it is recorded, and does not run");
        const auto status =
            query<cl_int>("clGetEventInfo", driver().clGetEventInfo, event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS);
        if (!status) return std::unexpected(status.error());
        if (*status < 0) return driver_error("the work before an event", *status);
        return *status == CL_COMPLETE;
    }

    bool keep_moment() noexcept override
    try {
        if (point || moment) return moment != nullptr;
        auto made = std::make_shared<Moment>(0);
        auto kept = std::make_unique<std::shared_ptr<Moment>>(made);
        if (!call("clSetEventCallback", driver().clSetEventCallback, event.get(), cl_int{CL_COMPLETE}, &note_moment,
                  static_cast<void*>(kept.get())))
            return false;
        static_cast<void>(kept.release()); // the callback owns it now
        moment = std::move(made);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }

    std::optional<std::chrono::steady_clock::time_point> done_at() const noexcept override
    {
        const auto at = moment ? moment->load() : 0;
        if (at == 0) return std::nullopt;
        return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(at));
    }

    const Core* core;
    DriverEvent event;                  ///< set outside a capture
    std::optional<CapturedPoint> point; ///< set inside a capture
    std::shared_ptr<Moment> moment;     ///< null: not requested
};

} // namespace

OpenclStream::OpenclStream(Core& core, Queue queue) : m_core(core), m_queue(std::move(queue))
{
    LiveQueues::instance().add(m_queue.get());
}

OpenclStream::~OpenclStream() { LiveQueues::instance().remove(m_queue.get()); }

std::unexpected<Error> OpenclStream::failed(Error error)
{
    if (is_capturing()) return m_capture.failed(std::move(error));
    return std::unexpected(std::move(error));
}

Result<cl_kernel> OpenclStream::kernel_of(const RawKernel& work)
{
    const auto module = module_of(work);
    if (!module) return std::unexpected(module.error());
    auto& kernels = m_kernels[(*module)->program()];
    if (const auto found = kernels.find(work.kernel); found != kernels.end()) return found->second.get();
    auto made = (*module)->create_kernel(work.kernel);
    if (!made) return std::unexpected(made.error());
    return kernels.emplace(work.kernel, std::move(*made)).first->second.get();
}

Result<void> OpenclStream::launch(const RawKernel& work)
{
    if (auto checked = check_launch(work, m_core.limits, m_core.memory); !checked) return failed(checked.error());
    if (is_capturing()) return m_capture.add(work);
    const auto kernel = kernel_of(work);
    if (!kernel) return std::unexpected(kernel.error());
    for (cl_uint index = 0; index < work.params.size(); ++index) {
        if (auto set = set_param(*kernel, index, work.params[index], m_core.memory); !set) {
            return within(fmt::format("kernel '{}', parameter {}", work.kernel, index), set.error());
        }
    }
    if (auto enqueued = enqueue_kernel(queue(), *kernel, geometry_of(work)); !enqueued) {
        return within(fmt::format("kernel '{}'", work.kernel), enqueued.error());
    }
    static_cast<OpenclModule*>(work.module)->note_launch(work.kernel, work.grid, work.block);
    return {};
}

Result<void> OpenclStream::copy(const RawCopy& work)
{
    if (auto checked = check_copy(work, m_core.memory); !checked) return failed(checked.error());
    if (is_capturing()) return m_capture.add(work);
    const auto source = m_core.memory.object("copy source", work.source, work.size);
    if (!source) return std::unexpected(source.error());
    const auto destination = m_core.memory.object("copy destination", work.destination, work.size);
    if (!destination) return std::unexpected(destination.error());
    return enqueue_copy(queue(), *source, *destination, work);
}

Result<void> OpenclStream::fill(const RawFill& work)
{
    if (auto checked = check_fill(work, m_core.memory); !checked) return failed(checked.error());
    if (is_capturing()) return m_capture.add(work);
    const auto destination = m_core.memory.object("fill destination", work.destination, work.size);
    if (!destination) return std::unexpected(destination.error());
    return enqueue_fill(queue(), *destination, work);
}

Result<void> OpenclStream::check(const RawWork& work)
{
    if (const auto* const kernel = std::get_if<RawKernel>(&work)) {
        if (auto checked = check_launch(*kernel, m_core.limits, m_core.memory); !checked) return checked;
        const auto ready = kernel_of(*kernel);
        return ready ? Result<void>{} : std::unexpected(ready.error());
    }
    if (const auto* const copy = std::get_if<RawCopy>(&work)) return check_copy(*copy, m_core.memory);
    if (const auto* const fill = std::get_if<RawFill>(&work)) return check_fill(*fill, m_core.memory);
    return Stream::check(work);
}

Result<std::shared_ptr<Event>> OpenclStream::record_event()
{
    if (is_capturing()) return std::make_shared<OpenclEvent>(m_core, m_capture.point());
    auto event = enqueue_marker(queue());
    if (!event) return std::unexpected(event.error());
    // A queue may wait for another queue's event only after that queue was flushed (OpenCL 1.2, clFlush).
    if (auto flushed = call("clFlush", driver().clFlush, queue()); !flushed) return std::unexpected(flushed.error());
    return std::make_shared<OpenclEvent>(m_core, std::move(*event));
}

Result<void> OpenclStream::wait(const std::shared_ptr<Event>& event)
{
    const auto* const ours = dynamic_cast<const OpenclEvent*>(event.get());
    if (ours == nullptr || ours->core != &m_core)
        return failed({ErrorCode::invalid_argument, "wait for an event that is null or of another device"});
    if (ours->point) return m_capture.wait(*ours->point);
    if (is_capturing()) return m_capture.refuse("wait for an event that was recorded outside the capture");
    const cl_event waited = ours->event.get();
    return enqueue_barrier(queue(), Waits(&waited, 1));
}

Result<void> OpenclStream::synchronize()
{
    if (is_capturing()) return m_capture.refuse("synchronize");
    return call("clFinish", driver().clFinish, queue());
}

} // namespace warmgraph::backends::opencl
