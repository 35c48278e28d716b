#include "warmgraph/call/callable_runner.hpp"

#include "warmgraph/autotune/tuner_impl.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

/// The objects that captures use to run the callable.
struct CaptureRuns {
    explicit CaptureRuns(const Runnable& own)
        : streams(own.device),
          runnable{own.name, own.interface, own.callable, own.device, streams, own.programs},
          run(run_once(runnable))
    {
    }
    StreamPool streams;
    Runnable runnable;
    RunOnce run;
};

} // namespace

CallableRunner::CallableRunner(std::shared_ptr<const Declaration> declaration, std::shared_ptr<LastStream> last)
    : m_declaration(std::move(declaration)),
      m_streams(m_declaration->backend()),
      m_runnable{m_declaration->name, m_declaration->interface, m_declaration->callable, m_declaration->backend(),
                 m_streams,           &m_declaration->programs},
      m_scratch(m_declaration->backend(), ScratchPool::Kind::memory),
      m_last(std::move(last))
{
}

void CallableRunner::order_after_last(const std::shared_ptr<backends::Stream>& stream)
{
    auto& last = m_last->stream;
    if (last == stream) return;
    // The last stream is being captured. An event from that stream would draw `stream` and its work into that capture.
    if (last && last->is_capturing()) {
        log().debug("{}: the stream of its last call is being captured, so this call does not wait for it",
                    m_declaration->path);
    } else if (last) {
        const auto event = last->record_event();
        const auto ordered = event ? stream->wait(*event) : Result<void>{std::unexpected(event.error())};
        if (!ordered) { // if no event orders the work, the host waits
            log().warn("{}: the host waits for the stream of its last call: {}", m_declaration->path,
                       ordered.error().message);
            value_or_raise(last->synchronize());
        }
    }
    last = stream;
}

RunContext CallableRunner::run(const Frame& frame, const std::shared_ptr<backends::Stream>& stream, Phases& phases)
{
    order_after_last(stream);
    RunContext context;
    context.function = m_declaration->name;
    context.phases = &phases;
    const RunInputs inputs{frame.tensors, frame.memory, frame.scalars, frame.values};
    const std::scoped_lock lock{m_callable_mutex};
    warmgraph::run(m_runnable, inputs, m_scratch, stream, context);
    return context;
}

void CallableRunner::run_measured(const Frame& frame, const std::shared_ptr<backends::Stream>& stream, Phases& phases)
{
    const Milliseconds compiled_before = phases.get("compile");
    const auto started = system_clock().steady();
    run(frame, stream, phases);
    phases.add("eager run", system_clock().steady() - started - (phases.get("compile") - compiled_before));
}

void CallableRunner::run_into_capture(const Frame& frame, const std::shared_ptr<backends::Stream>& stream)
{
    if (!m_declaration->callable)
        raise({ErrorCode::unsupported,
               fmt::format("'{}' has no callable that could run in your program's capture: call it outside the capture",
                           m_declaration->path)});
    RunContext context;
    context.function = m_declaration->name;
    const RunInputs inputs{frame.tensors, frame.memory, frame.scalars, frame.values};
    auto& scratch = m_captured_scratch.emplace_back(m_declaration->backend(), ScratchPool::Kind::memory);
    const std::scoped_lock lock{m_callable_mutex};
    // All warm-up calls may have been replays, so this may be the callable's first run in the process.
    const auto allowed = stream->allow_first_run();
    warmgraph::run(m_runnable, inputs, scratch, stream, context);
}

void CallableRunner::validate_tuned() const
{
    for (const Tuned& tuned : m_declaration->spec.tuned) TunedAccess::validate(tuned);
}

Error CallableRunner::retired()
{
    return {ErrorCode::not_recordable,
            "its own callable destroyed it, so it is not recorded: destroy it after the call"};
}

RunOnce CallableRunner::capture_runs()
{
    const auto runs = std::make_shared<CaptureRuns>(m_runnable);
    return [this, runs](const RunInputs& inputs, ScratchPool& scratch, const std::shared_ptr<backends::Stream>& stream,
                        RunContext& context) -> Result<void> {
        const std::scoped_lock lock{m_callable_mutex};
        if (m_is_retired) return std::unexpected(retired());
        return runs->run(inputs, scratch, stream, context);
    };
}

} // namespace warmgraph
