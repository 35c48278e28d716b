#include "warmgraph/call/record_jobs.hpp"

#include <algorithm>
#include <ranges>

#include "warmgraph/base/log.hpp"
#include "warmgraph/call/capture_folder.hpp"
#include "warmgraph/call/surroundings.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

/// How long a call waits for its own work before it may complete an earlier recording.
constexpr std::chrono::milliseconds k_wait_for_own_work{20};

/// Prepares the session. Its copies may not fit in host memory.
Result<void> prepare(RecordJob& job, const std::shared_ptr<backends::Stream>& stream)
try {
    const auto timer = job.first_call.phases.measure("prepare");
    if (auto prepared = job.session->prepare(); !prepared) return prepared;
    return job.session->begin_answer(stream);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "out of host memory while it was recorded and verified");
}

/// Turns an exception of the caller's function into a refusal.
template <class T>
std::function<Result<T>()> refusing(const std::function<T()>& of_the_caller)
{
    if (!of_the_caller) return {};
    return [&of_the_caller]() -> Result<T> {
        try {
            if constexpr (std::is_void_v<T>) {
                of_the_caller();
                return {};
            } else {
                return of_the_caller();
            }
        } catch (const std::exception& refusal) {
            return fail(ErrorCode::not_recordable, "{}", refusal.what());
        }
    };
}

} // namespace

RecordJobs::RecordJobs(std::shared_ptr<const Declaration> declaration, Publisher publisher,
                       std::shared_ptr<Programs> programs, replay::ModuleCache& modules, Counters& counters,
                       Settings settings)
    : m_declaration(std::move(declaration)),
      m_publisher(std::move(publisher)),
      m_programs(std::move(programs)),
      m_modules(modules),
      m_counters(counters),
      m_settings(settings),
      m_faults(m_declaration, counters)
{
}

// --- recordings of calls

CaptureTarget RecordJobs::target() const
{
    return {m_declaration->name,    m_declaration->interface, m_declaration->backend(), {},
            m_declaration->handles, m_declaration->number};
}

std::unique_ptr<RecordJob> RecordJobs::new_job(const Frame& frame, const PairRole* role, FirstCall& first_call,
                                               const std::vector<std::string>& environment,
                                               CallableRunner& runner) const
{
    const Spec& spec = m_declaration->spec;
    auto job = std::make_unique<RecordJob>();
    job->frame = frame;
    job->memory = std::make_unique<backends::MemoryTally::Watch>(m_declaration->backend()->tally());
    CaptureTarget whose = target();
    if (role != nullptr && role->others) whose.others = role->others();
    whose.run = runner.capture_runs();
    RecordOptions options;
    options.probing = m_settings.probing;
    options.frozen_variables = spec.frozen_variables;
    options.most_constant_bytes = spec.max_constant_bytes;
    options.unused = spec.strict ? UnusedWords::refused : UnusedWords::tried;
    options.keeps_undeclared = spec.undeclared == Undeclared::constants;
    job->session = std::make_shared<RecordingSession>(std::move(whose), frame, m_modules, options);
    job->first_call = std::move(first_call);
    job->environment = environment;
    return job;
}

void RecordJobs::hold_code(RecordJob& job) const
{
    if (auto held = m_declaration->backend()->recording().hold_recording())
        job.keeps_code = std::move(*held);
    else
        job.refusal = held.error();
}

void RecordJobs::answer(std::unique_ptr<RecordJob>& job, const std::shared_ptr<backends::Stream>& stream,
                        CallableRunner& runner) const
{
    if (!job->refusal)
        if (auto prepared = prepare(*job, stream); !prepared) job->refusal = prepared.error();
    if (job->refusal) job->session->give_up();
    Phases& phases = job->first_call.phases;
    const Milliseconds compiled_before = phases.get("compile");
    job->memory->pause();
    const auto started = system_clock().steady();
    const RunContext context = [&] {
        try {
            return runner.run(job->frame, stream, phases);
        } catch (...) {
            job.reset();
            throw;
        }
    }();
    phases.add("answer", system_clock().steady() - started - (phases.get("compile") - compiled_before));
    if (job->refusal) return;
    for (const LaunchedProgram& program : context.modules | std::views::values) job->launched.push_back(program.module);
    job->memory->resume();
    auto ended = job->session->end_answer(context);
    job->memory->pause();
    if (ended) ended = check_programs(context);
    if (runner.is_retired()) ended = std::unexpected(CallableRunner::retired());
    if (!ended) job->refusal = ended.error();
}

/// Refuses a program that the Spec does not name, because its source is then not a guard.
Result<void> RecordJobs::check_programs(const RunContext& context) const
{
    for (const LaunchedProgram& program : context.modules | std::views::values) {
        if (std::ranges::find(m_declaration->spec.code, program.source, &ProgramAccess::source_digest) ==
            m_declaration->spec.code.end())
            return fail(ErrorCode::not_recordable,
                        "it launches the program '{}', which is not in Spec::code: add it, so that a change of its "
                        "source leads to a new recording",
                        program.name);
    }
    return {};
}

void RecordJobs::defer(std::unique_ptr<RecordJob>& job)
{
    m_is_under_way = false;
    m_pending = std::move(job);
}

std::unique_ptr<RecordJob> RecordJobs::take_pending(backends::Stream& stream)
{
    if (!m_pending || m_is_under_way || is_on_demand()) return nullptr;
    const auto done = m_pending->session->is_answered();
    if (done && !*done) return nullptr;
    // This call's own work may wait for this thread. Recording frees memory, which waits for all work on the device.
    const auto idle = is_idle(stream, k_wait_for_own_work);
    if (!idle || !*idle) return nullptr;
    m_is_under_way = true;
    return std::move(m_pending);
}

std::unique_ptr<RecordJob> RecordJobs::take_answered()
{
    if (!m_pending || m_is_under_way) return nullptr;
    const auto done = m_pending->session->is_answered();
    if (done && !*done) return nullptr;
    m_is_under_way = true;
    return std::move(m_pending);
}

// --- completion of recordings, without the function's lock

CompletedJob RecordJobs::complete(RecordJob& job, const PairRole* role, const Lookup& lookup,
                                  const CallOutcomes& outcomes)
{
    job.memory->resume();
    if (!job.refusal)
        if (auto done = job.session->wait_for_answer(); !done) job.refusal = done.error();
    return job.verified ? complete_verification(job, role, lookup, outcomes)
                        : complete_recording(job, role, lookup, outcomes);
}

CompletedJob RecordJobs::complete_verification(RecordJob& job, const PairRole* role, const Lookup& lookup,
                                               const CallOutcomes& outcomes)
{
    const Digest digest = job.verified->guards_digest;
    // Crashes of earlier loads were checked when the entry was loaded.
    auto mark = job.verified->unused ? lookup.begin_load(digest).value_or(nullptr) : nullptr;
    auto verified = job.refusal ? Result<void>{std::unexpected(*job.refusal)}
                                : job.session->verify(*job.verified->executable, job.first_call.phases);
    if (mark && verified) mark->succeed();
    mark.reset();
    if (verified) {
        outcomes.count_hit(*job.verified, role == nullptr || role->counts_hit());
        lookup.note_use(digest);
        return {Outcome::replayed, "", Remember::no, std::exchange(job.verified, std::nullopt)};
    }
    // NOLINTNEXTLINE(bugprone-unused-return-value): its work never ends
    if (job.session->is_abandoned()) static_cast<void>(job.verified->executable.release());
    job.verified.reset();
    m_faults.note("verify on load", verified.error());
    if (verified.error().code == ErrorCode::partly_launched)
        raise(within(m_declaration->path, verified.error()).error());
    job.first_call.reason = verified.error().message;
    outcomes.count_wrong_entry(job.first_call);
    // Other errors (memory, driver) say nothing about the entry.
    if (verified.error().code == ErrorCode::verification_failed && job.records) {
        lookup.remove(digest);
        return complete_recording(job, role, lookup, outcomes);
    }
    const bool passes = verified.error().code == ErrorCode::driver_failed; // a later call may load the entry
    return {Outcome::eager, job.first_call.reason, passes ? Remember::no : Remember::yes};
}

Result<Recording> RecordJobs::record(RecordJob& job) const
try {
    return job.session->record(m_publisher.new_header(job.first_call), job.first_call.phases);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "out of host memory while it was recorded and verified");
} catch (const std::exception& thrown) {
    return fail(ErrorCode::internal, "recording throws: {}", thrown.what());
}

/// Judges the entry on disk beside a new recording. Does not try an entry that the call already failed to use.
EntryComparison RecordJobs::compare_with_stored(const Recording& recording, RecordJob& job, const Lookup& lookup) const
{
    if (job.first_call.tried) return {};
    const HoldToAnswer hold = [&job](std::unique_ptr<replay::Executable> executable) {
        Phases unmeasured;
        auto held = job.session->verify(*executable, unmeasured);
        // NOLINTNEXTLINE(bugprone-unused-return-value): its work never ends
        if (job.session->is_abandoned()) static_cast<void>(executable.release());
        return held;
    };
    auto beside = m_publisher.judge(recording.entry, lookup, job.frame, hold);
    // An error means that a trial damaged memory that the function itself uses.
    if (!beside) raise(within(m_declaration->path, beside.error()).error());
    return std::move(*beside);
}

CompletedJob RecordJobs::complete_recording(RecordJob& job, const PairRole* role, const Lookup& lookup,
                                            const CallOutcomes& outcomes)
{
    auto recording = job.refusal ? Result<Recording>{std::unexpected(*job.refusal)} : record(job);
    if (!recording) {
        if (recording.error().code == ErrorCode::partly_launched)
            raise(within(m_declaration->path, recording.error()).error());
        return refuse(job, recording.error(), outcomes);
    }
    // A published entry must be right for the environment of its call.
    if (environment_of(m_declaration->spec) != job.environment)
        return refuse(job,
                      {ErrorCode::not_recordable, "an environment variable in Spec::environment changed while the "
                                                  "function was being recorded: a later call is recorded"},
                      outcomes);
    auto& info = recording->entry.header.info;
    info.compiled = m_programs->share_out(job.launched, job.first_call.started, info.answer_ms - recording->run_ms);
    std::string difference;
    std::string unpublished;
    try {
        const auto stored = compare_with_stored(*recording, job, lookup);
        if (stored.recording) recording->entry.header.recording = stored.recording;
        job.first_call.recording_bytes = recording->device_bytes = job.memory->peak();
        if (stored.relation == EntryComparison::Relation::recompiled)
            difference = m_publisher.publish_tombstone(recording->entry, stored);
        else
            unpublished = m_publisher.publish(job.first_call.phases, *recording, stored);
    } catch (const std::bad_alloc&) {
        unpublished = "it is kept only in this process: out of host memory while it was published";
    }
    if (!difference.empty())
        return refuse(
            job,
            {ErrorCode::not_recordable, "recompiled, a second recording under the same guards differs: " + difference},
            outcomes);
    outcomes.count_recording(info.record_ms, role == nullptr || role->counts_recording() ? 1 : 0);
    auto variant = lookup.variant_of(recording->entry.header, std::move(recording->executable));
    if (role != nullptr && role->is_forward()) variant.use = LoadedVariant::Use::waits;
    const std::string& missed = job.first_call.reason;
    return {Outcome::recorded, unpublished.empty() ? missed : missed + "; " + unpublished, Remember::no,
            std::move(variant)};
}

CompletedJob RecordJobs::refuse(const RecordJob& job, const Error& error, const CallOutcomes& outcomes)
{
    outcomes.count_refusal(error);
    log().warn("cannot record '{}': {}", m_declaration->name, error.message);
    // The first call may have done one-time work (made a library's handle, uploaded a table), so recording is tried
    // once more at the next call.
    const bool is_first = job.session->strayed() && m_strayed.insert(job.first_call.digest).second;
    return {Outcome::refused, error.message, is_first ? Remember::no : Remember::yes};
}

// --- recordings of captures

void RecordJobs::require_adoptable(const FirstCall& first_call) const
{
    const std::string& name = m_declaration->name;
    if (m_declaration->policy == Policy::require_hit)
        raise(
            {ErrorCode::miss_forbidden,
             fmt::format("'{}' is adopted under policy require_hit, which forbids recording: use Cache::load", name)});
    if (m_declaration->policy == Policy::refresh) return;
    if (const auto difference = m_publisher.recompiled(first_call.digest))
        raise({ErrorCode::not_recordable,
               fmt::format("'{}' was recorded twice under the same guards with different graphs ({}): give what "
                           "changed as a guard (Spec::config or Spec::version), or adopt it under policy refresh",
                           name, *difference)});
}

std::unique_ptr<FileLock> RecordJobs::wait_for_lock(const Digest& digest) const
{
    return m_declaration->publishes ? m_publisher.lock(digest, m_settings.wait_for_others) : nullptr;
}

AdoptedCapture RecordJobs::adopted_capture(const NativeCapture& capture, const Frame& frame) const
{
    AdoptedCapture result;
    result.graph = capture.graph;
    result.regions = frame.memory;
    result.scalars = frame.scalars;
    result.scratch = capture.scratch;
    result.free_blocks = capture.free_blocks;
    const auto handles = [](const std::vector<std::pair<std::string, void*>>& given, const NamedHandles& declared) {
        NamedHandles named;
        for (const auto& [name, handle] : given) named.emplace_back(name, reinterpret_cast<std::uintptr_t>(handle));
        return named.empty() ? declared : named;
    };
    result.handles = {handles(capture.events, m_declaration->handles.events),
                      handles(capture.semaphores, m_declaration->handles.semaphores)};
    return result;
}

std::string RecordJobs::keep_adopted(FirstCall& first_call, Recording& recording, const EntryComparison& beside,
                                     const CallOutcomes& outcomes) const
{
    if (auto why = m_publisher.why_not(); !why.empty()) return "not published: " + why;
    if (beside.relation == EntryComparison::Relation::recompiled) {
        const std::string difference = m_publisher.publish_tombstone(recording.entry, beside);
        outcomes.count_refusal("recompiled");
        raise({ErrorCode::not_recordable,
               fmt::format("'{}' was recorded before under the same guards with a different graph: {}; give what "
                           "changed as a guard (Spec::config or Spec::version)",
                           m_declaration->name, difference)});
    }
    return m_publisher.publish(first_call.phases, recording, beside);
}

/// Adopts `first` with a capture of another process: tries these captures in order until one proves the adoption.
Result<Recording> RecordJobs::adopt_with_others(const AdoptedCapture& first, AdoptOptions options, const Frame& frame,
                                                const std::string& folder, FirstCall& first_call) const
{
    auto found = [&]() -> Result<CaptureFolder::CaptureList> {
        auto opened = CaptureFolder::open(posix_file_system(), folder, false);
        if (!opened) return std::unexpected(opened.error());
        return opened->find({m_declaration->key, first_call.digest});
    }();
    if (!found) return within(fmt::format("captures of other processes in {}", folder), found.error());
    for (const std::string& ignored : found->ignored)
        log().info("a capture of '{}' is not used: {}", m_declaration->name, ignored);
    std::vector<std::string> reasons = std::move(found->ignored);
    for (const StoredCapture& capture : found->captures) {
        options.stored = &capture;
        auto recording = warmgraph::adopt(target(), frame, m_publisher.new_header(first_call), first, nullptr, options,
                                          m_modules, first_call.phases);
        const bool may_be_another = !recording && recording.error().code == ErrorCode::not_recordable;
        if (!may_be_another) {
            m_counters.captures_read(recording ? 1 : 0, reasons.size());
            return recording;
        }
        log().info("the capture of '{}' that process {} wrote cannot prove this capture: {}", m_declaration->name,
                   capture.process, recording.error().message);
        reasons.push_back(std::move(recording.error().message));
    }
    m_counters.captures_read(0, reasons.size());
    if (found->captures.empty())
        return fail(ErrorCode::not_found, "{} has no capture of this call from another process{}{}", folder,
                    reasons.empty() ? "" : ": ", fmt::join(reasons, "; "));
    return fail(ErrorCode::not_recordable, "{}", reasons.back());
}

Result<Recording> RecordJobs::adopt(const Adoption& adoption, const Frame& frame, const AdoptedCapture& first,
                                    const AdoptedCapture* second, FirstCall& first_call, const Lookup& lookup,
                                    EntryComparison& beside) const
{
    const Spec& spec = m_declaration->spec;
    const backends::MemoryTally::Watch memory{m_declaration->backend()->tally()};
    AdoptOptions options{.proof = adoption.unproven == Unproven::allow ? Proof::allow_unproven : Proof::required,
                         .unused = spec.strict ? UnusedWords::refused : UnusedWords::tried,
                         .frozen_variables = spec.frozen_variables,
                         .most_constant_bytes = spec.max_constant_bytes,
                         .keeps_undeclared = spec.undeclared == Undeclared::constants};
    options.number_distance = adoption.number_distance;
    options.after_run = refusing(adoption.after_run);
    options.agreement = refusing(adoption.agreement);
    if (m_declaration->publishes)
        options.compare = [&](const cachefmt::Entry& recorded, const HoldToAnswer& hold) -> Result<void> {
            auto judged = m_publisher.judge(recorded, lookup, frame, hold);
            if (!judged) return std::unexpected(judged.error());
            beside = std::move(*judged);
            return {};
        };
    auto recording = adoption.captures.empty()
                         ? warmgraph::adopt(target(), frame, m_publisher.new_header(first_call), first, second, options,
                                            m_modules, first_call.phases)
                         : adopt_with_others(first, options, frame, adoption.captures, first_call);
    if (recording) first_call.recording_bytes = recording->device_bytes = memory.peak();
    return recording;
}

std::string RecordJobs::write_capture(const Adoption& adoption, const Frame& frame, const Digest& digest) const
{
    const auto capture = value_or_raise(
        capture_for_others(target(), frame, {m_declaration->key, digest}, adopted_capture(adoption.first, frame)));
    auto folder = value_or_raise(CaptureFolder::open(posix_file_system(), adoption.captures, true));
    auto name = value_or_raise(folder.write(capture));
    m_counters.capture_written();
    return name;
}

} // namespace warmgraph
