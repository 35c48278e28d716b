// Function::Impl, the way of a miss: the function answers as it is, in the caller's stream and on the caller's memory;
// what is recorded, or compared with the answer, is so afterwards and without the function's locks.
#include <algorithm>
#include <chrono>
#include <ranges>

#include "function_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/backends/event_wait.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph {

Result<bool> is_idle(backends::Stream& stream, std::chrono::nanoseconds limit)
{
    auto event = stream.record_event();
    if (!event) {
        auto done = stream.synchronize(); // a stream without events
        return done ? Result<bool>{true} : std::unexpected(done.error());
    }
    return backends::wait_for(**event, limit);
}

namespace {

/// How long a call that might complete an earlier recording looks whether its own work is done.
constexpr std::chrono::milliseconds k_wait_for_own_work{20};

/// The callable is not run again after this: the caller may have freed what it uses.
Error destroyed_within()
{
    return {ErrorCode::not_recordable, "its own callable destroyed it: destroy it after the call, to have it recorded"};
}

/// What captures run the callable with, beside the function's own.
struct CaptureRuns {
    CaptureRuns(const Runnable& own, std::mutex& one_at_a_time)
        : streams(own.device),
          runnable{own.name, own.interface, own.callable, own.device, streams, own.programs},
          run(run_once(runnable)),
          mutex(one_at_a_time)
    {
    }
    StreamPool streams;
    Runnable runnable;
    RunOnce run;
    std::mutex& mutex;
};

} // namespace

std::unique_ptr<Job> Function::Impl::new_job(Journey& journey) const
{
    auto job = std::make_unique<Job>();
    job->frame = m_frame;
    Subject subject = m_subject;
    if (m_half && m_half->others) subject.others = m_half->others();
    auto runs = std::make_shared<CaptureRuns>(m_runnable, m_callable_mutex);
    subject.run = [runs, &is_retired = m_is_retired](const RunInputs& inputs, ScratchPool& scratch,
                                                     const std::shared_ptr<backends::Stream>& stream,
                                                     RunContext& context) -> Result<void> {
        const std::scoped_lock lock{runs->mutex};
        if (is_retired) return std::unexpected(destroyed_within());
        return runs->run(inputs, scratch, stream, context);
    };
    RecordOptions options;
    options.probing = std::chrono::milliseconds{m_cache->options.probing_ms};
    options.frozen_variables = m_spec.frozen_variables;
    options.most_constant_bytes = m_spec.max_constant_bytes;
    options.unused = m_spec.strict ? UnusedWords::refused : UnusedWords::tried;
    options.keeps_undeclared = m_spec.undeclared == Undeclared::constants;
    job->session = std::make_shared<RecordingSession>(std::move(subject), m_frame, m_cache->modules, options);
    job->journey = std::move(journey);
    job->environment = m_environment;
    return job;
}

/// Copies of the function's memory may be more than the host has.
Result<void> Function::Impl::prepare(Job& job, const std::shared_ptr<backends::Stream>& stream) const
try {
    const auto timer = job.journey.phases.measure("prepare");
    if (auto prepared = job.session->prepare(); !prepared) return prepared;
    return job.session->begin_answer(stream);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory to record and verify it");
}

/// The call's result. What the callable throws passes through, and nothing is recorded then.
void Function::Impl::answer(Job& job, const std::shared_ptr<backends::Stream>& stream)
{
    Phases& phases = job.journey.phases;
    const Milliseconds compiled_before = phases.get("compile");
    const auto started = system_clock().steady();
    const RunContext context = run_eagerly(stream, phases);
    phases.add("answer", system_clock().steady() - started - (phases.get("compile") - compiled_before));
    if (job.refusal) return;
    for (const LaunchedProgram& program : context.modules | std::views::values) job.launched.push_back(program.module);
    auto ended = job.session->end_answer(context);
    if (ended) ended = check_programs(context);
    if (m_is_retired) ended = std::unexpected(destroyed_within());
    if (!ended) job.refusal = ended.error();
}

void Function::Impl::prepare_and_answer(std::unique_ptr<Job>& job, const std::shared_ptr<backends::Stream>& stream)
{
    if (!job->refusal)
        if (auto prepared = prepare(*job, stream); !prepared) job->refusal = prepared.error();
    if (job->refusal) job->session->give_up();
    try {
        answer(*job, stream);
    } catch (...) {
        job.reset();
        throw;
    }
}

/// A program's source is a guard only where the Spec names it.
Result<void> Function::Impl::check_programs(const RunContext& context) const
{
    for (const LaunchedProgram& program : context.modules | std::views::values) {
        if (std::ranges::find(m_spec.code, program.source, &ProgramAccess::source_digest) == m_spec.code.end())
            return fail(ErrorCode::not_recordable,
                        "it launches the program '{}', which is not in Spec::code: add it, so that another source is "
                        "another recording",
                        program.name);
    }
    return {};
}

Outcome Function::Impl::answer_and_record(Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                                          std::unique_ptr<Job>& job)
{
    // Tried, never waited for: whoever holds it records this very entry.
    auto lock = m_cache->store->try_record_lock({m_key, journey.digest});
    if (!lock) cache_fault("lock", lock.error()); // and record without
    if (lock && !*lock)
        return finish_eagerly(journey, Outcome::eager, "another process is recording it", Remember::no, stream);
    // Who held it before may have published since the look-up.
    if (m_policy != Policy::refresh) {
        const auto again = decide(situation(journey.now), headers(journey.digest));
        if (again.action == Plan::Action::replay && !journey.tried)
            if (auto variant = load(again.entries.front(), *stream, journey.phases)) {
                count_hit(*variant);
                keep(std::move(*variant));
                if (launch(m_variants.front(), stream))
                    return finish(journey, Outcome::replayed, "another process recorded it meanwhile", Remember::no);
                m_variants.pop_front();
            }
    }
    order_after_last(stream);
    const auto idle = is_idle(*stream);
    if (idle && !*idle)
        return finish_eagerly(journey, Outcome::eager,
                              "work that was enqueued before the call is not done: a later call is recorded",
                              Remember::no, stream);
    job = new_job(journey);
    if (lock) job->lock = std::move(*lock);
    if (auto held = m_device->device->recording().hold_recording())
        job->keeps_code = std::move(*held);
    else
        job->refusal = held.error();
    if (!idle) job->refusal = idle.error();
    prepare_and_answer(job, stream);
    if (job->refusal) {
        const auto refused = std::exchange(job, nullptr);
        return refuse_locked(*refused, *refused->refusal);
    }
    m_is_recording = true;
    if (m_cache->options.record == RecordWhen::on_demand)
        return defer(job, "its recording waits for Cache::record_pending");
    if (job->session->waits_outside())
        return defer(job, "it works together with the outside: it is recorded by a later call, when its work is done");
    return Outcome::recorded; // complete() says what became of it
}

Outcome Function::Impl::answer_and_verify(LoadedVariant variant, Journey& journey,
                                          const std::shared_ptr<backends::Stream>& stream, std::unique_ptr<Job>& job)
{
    order_after_last(stream);
    const auto idle = is_idle(*stream);
    if (!idle || !*idle) // the entry is loaded again by the next call
        return finish_eagerly(journey, Outcome::eager,
                              "work that was enqueued before the call is not done: a later call verifies the entry",
                              Remember::no, stream);
    job = new_job(journey);
    variant.mark.reset(); // the function runs first
    job->verified = std::move(variant);
    job->records = publishes();
    prepare_and_answer(job, stream);
    m_is_recording = true;
    if (!job->refusal && job->session->waits_outside())
        return defer(job, "it works together with the outside: a later call compares its entry, when its work is done");
    return Outcome::replayed;
}

/// A stored entry that is to be compared with an answer, while another call's is not done with.
Outcome Function::Impl::run_beside_pending(Journey& journey, const std::shared_ptr<backends::Stream>& stream,
                                           std::unique_ptr<Job>& job)
{
    const Outcome outcome =
        finish_eagerly(journey, Outcome::eager, "another call of it is being compared", Remember::no, stream);
    end_report(journey);
    job = take_pending(*stream);
    return outcome;
}

/// The answer is given; the rest waits.
Outcome Function::Impl::defer(std::unique_ptr<Job>& job, std::string why)
{
    m_is_recording = false;
    const Journey& journey = job->journey;
    finish(journey, Outcome::eager, std::move(why), Remember::no);
    end_report(journey);
    m_pending = std::move(job);
    return Outcome::eager;
}

/// What waits and is done. Under the function's lock; the caller completes it without.
std::unique_ptr<Job> Function::Impl::take_pending(backends::Stream& stream)
{
    if (!m_pending || m_is_recording || m_cache->options.record == RecordWhen::on_demand) return nullptr;
    const auto done = m_pending->session->is_answered();
    if (done && !*done) return nullptr;
    // This call's own work may wait for this thread. Recording frees memory, which waits for all work on the device.
    const auto idle = is_idle(stream, k_wait_for_own_work);
    if (!idle || !*idle) return nullptr;
    m_is_recording = true;
    return std::move(m_pending);
}

std::size_t Function::Impl::record_pending()
{
    refuse_inside_itself("recorded");
    std::unique_ptr<Job> job;
    {
        const std::scoped_lock lock{m_mutex};
        if (!m_pending || m_is_recording) return 0;
        const auto done = m_pending->session->is_answered();
        if (done && !*done) return 0;
        m_is_recording = true;
        job = std::move(m_pending);
    }
    return complete(*job) == Outcome::recorded ? 1 : 0;
}

// --- without the function's locks

/// Called without locks, once for each job. m_is_recording keeps other calls from beginning another one.
Outcome Function::Impl::complete(Job& job)
{
    struct Ended {
        Impl& impl;
        ~Ended()
        {
            const std::scoped_lock lock{impl.m_mutex};
            impl.m_is_recording = false;
        }
    } ended{*this};
    if (!job.refusal)
        if (auto done = job.session->wait_for_answer(); !done) job.refusal = done.error();
    return job.verified ? complete_verification(job) : complete_recording(job);
}

Outcome Function::Impl::complete_verification(Job& job)
{
    const Digest digest = job.verified->guards_digest;
    // How many died of it was asked when it was loaded.
    auto mark = job.verified->unused ? m_shelf->begin_load({m_key, digest}, m_device->load_target()).value_or(nullptr)
                                     : nullptr;
    auto verified = job.refusal ? Result<void>{std::unexpected(*job.refusal)}
                                : job.session->verify(*job.verified->executable, job.journey.phases);
    if (mark && verified) mark->succeed();
    mark.reset();
    if (verified) {
        const std::scoped_lock lock{m_mutex};
        count_hit(*job.verified);
        m_shelf->note_use({m_key, digest});
        keep(std::move(*job.verified));
        finish(job.journey, Outcome::replayed, "", Remember::no);
        end_report(job.journey);
        return Outcome::replayed;
    }
    // NOLINTNEXTLINE(bugprone-unused-return-value): what it runs never ends
    if (job.session->is_abandoned()) static_cast<void>(job.verified->executable.release());
    job.verified.reset();
    cache_fault("verify on load", verified.error());
    if (verified.error().code == ErrorCode::partly_launched) raise(within(label(), verified.error()).error());
    job.journey.reason = verified.error().message;
    m_cache->counters.miss(m_name, job.journey.reason);
    begin_miss(job.journey, job.journey.reason, {});
    // What else went wrong on the way (memory, driver) says nothing about the entry.
    if (verified.error().code == ErrorCode::verification_failed && job.records) {
        if (auto removed = m_shelf->remove({m_key, digest}); !removed) cache_fault("remove", removed.error());
        return complete_recording(job);
    }
    const std::scoped_lock lock{m_mutex};
    const bool passes = verified.error().code == ErrorCode::driver_failed; // a later call may load it
    finish(job.journey, Outcome::eager, job.journey.reason, passes ? Remember::no : Remember::yes);
    end_report(job.journey);
    return Outcome::eager;
}

Result<Recording> Function::Impl::record(Job& job) const
try {
    return job.session->record(new_header(job.journey), job.journey.phases);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory to record and verify it");
} catch (const std::exception& thrown) {
    return fail(ErrorCode::internal, "recording throws: {}", thrown.what());
}

/// A call that could not use the entry on disk does not try it a second time.
auto Function::Impl::stored_beside(const Recording& recording, Job& job) -> Stored
{
    if (job.journey.tried) return {};
    const HoldToAnswer hold = [&job](std::unique_ptr<replay::Executable> executable) {
        Phases unmeasured;
        auto held = job.session->verify(*executable, unmeasured);
        // NOLINTNEXTLINE(bugprone-unused-return-value): what it runs never ends
        if (job.session->is_abandoned()) static_cast<void>(executable.release());
        return held;
    };
    auto stored = judge_stored(recording.entry, job.frame, hold);
    // The function itself would compute with memory that a trial damaged.
    if (!stored) raise(within(label(), stored.error()).error());
    return std::move(*stored);
}

Outcome Function::Impl::complete_recording(Job& job)
{
    auto recording = job.refusal ? Result<Recording>{std::unexpected(*job.refusal)} : record(job);
    if (!recording) {
        if (recording.error().code == ErrorCode::partly_launched) raise(within(label(), recording.error()).error());
        return refuse(job, recording.error());
    }
    if (auto same = check_facts_again(job); !same) return refuse(job, same.error());
    auto& info = recording->entry.header.info;
    info.compiled = m_cache->programs->share_out(job.launched, job.journey.started, info.answer_ms - recording->run_ms);
    std::string difference;
    std::string unpublished;
    try {
        const auto stored = stored_beside(*recording, job);
        if (stored.is == Stored::Is::recompiled)
            difference = publish_tombstone(recording->entry, stored);
        else
            unpublished = publish(job.journey.phases, *recording, stored);
    } catch (const std::bad_alloc&) {
        unpublished = "it stays in this process: no host memory to publish it";
    }
    if (!difference.empty())
        return refuse(job, {ErrorCode::not_recordable,
                            "recompiled, a second recording under the same guards differs: " + difference});
    if (!m_half || m_half->counts_recording()) m_cache->counters.recording();
    const std::scoped_lock lock{m_mutex};
    const auto& header = recording->entry.header;
    auto variant = variant_of(header.guards, header.key.guards_digest, std::move(recording->executable));
    if (m_half && m_half->is_forward()) variant.use = LoadedVariant::Use::waits;
    keep(std::move(variant));
    const std::string& missed = job.journey.reason;
    finish(job.journey, Outcome::recorded, unpublished.empty() ? missed : missed + "; " + unpublished, Remember::no);
    end_report(job.journey);
    return Outcome::recorded;
}

/// The caller has the function's own result; only the recording is given up.
Outcome Function::Impl::refuse(Job& job, const Error& error)
{
    const std::scoped_lock lock{m_mutex};
    return refuse_locked(job, error);
}

Outcome Function::Impl::refuse_locked(Job& job, const Error& error)
{
    count_refusal(to_string(error.code));
    if (m_cache->store && is_for_unkept_code(error)) note_unkept_code(*m_cache->store, m_key);
    log().warn("cannot record '{}': {}", m_name, error.message);
    // The first call may have set up what later ones use (a library's handle, a table's upload): they are asked once
    // more.
    const bool is_first = job.session->strayed() && m_strayed.insert(job.journey.digest).second;
    finish(job.journey, Outcome::refused, error.message, is_first ? Remember::no : Remember::yes);
    end_report(job.journey);
    return Outcome::refused;
}

} // namespace warmgraph
