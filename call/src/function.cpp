// Function::Impl: how one call goes through the parts of a function.
#include <algorithm>

#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/call/function_impl.hpp"
#include "warmgraph/device/stream_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

std::string_view to_string(Outcome outcome) noexcept
{
    switch (outcome) {
    case Outcome::recorded: return "recorded";
    case Outcome::replayed: return "replayed";
    case Outcome::eager: return "eager";
    case Outcome::refused: return "refused";
    }
    return "unknown";
}

std::unique_lock<std::mutex> Function::Impl::lock(std::string_view asking) const
{
    refuse_inside_itself(declaration->name, asking);
    return std::unique_lock{mutex};
}

Outcome Function::Impl::call(const Stream& stream, std::span<const Arg> args, replay::AskedCapture asked, bool counts)
{
    refuse_nested(declaration->name);
    NextJob job;
    Outcome outcome = Outcome::eager;
    {
        std::unique_lock<std::mutex> default_stream_lock;
        if (stream == declaration->device->default_stream)
            default_stream_lock = std::unique_lock{declaration->device->default_stream_mutex};
        const std::scoped_lock lock{mutex};
        outcome = call_locked(stream, args, asked, counts, job);
    }
    // The caller's answer is enqueued; other threads may call meanwhile.
    return job ? complete(*job) : outcome;
}

Outcome Function::Impl::call_locked(const Stream& stream, std::span<const Arg> args, replay::AskedCapture asked,
                                    bool counts, NextJob& job)
{
    arguments.read(args);
    if (role) value_or_raise(role->check(arguments.frame()));
    loaded.forget_served();
    if (asked == replay::AskedCapture::no && stream->is_capturing()) {
        shapes.refuse_unpadded(arguments.frame());
        runner.run_into_capture(arguments.frame(), stream);
        return Outcome::eager;
    }
    if (role && role->runs_as_it_is()) return run_as_it_is(stream, "its forward was not replayed");
    if (shapes.is_padded()) return call_padded(stream, counts, job);
    if (counts) shapes.count(arguments.frame());
    return call_read(stream, job);
}

/// Pads a call and runs it. If a size is outside the buckets, the function runs without a graph and nothing is
/// recorded, because each such size would need its own variant.
Outcome Function::Impl::call_padded(const Stream& stream, bool counts, NextJob& job)
{
    const PaddedSizes padded = shapes.choose(arguments.frame(), counts);
    runner.order_after_last(stream); // an earlier launch may still use the memory
    shapes.pad(arguments.frame(), padded, *stream);
    Outcome outcome = Outcome::eager;
    if (padded.outside.empty() || !declaration->callable || !declaration->publishes) {
        outcome = call_read(stream, job);
    } else {
        // A later call may be recorded, which needs device code that was kept when the code was loaded.
        if (auto kept = declaration->backend()->recording().prepare_recording(); !kept)
            log().debug("{} runs as it is, and its recordings may be refused: {}", declaration->path,
                        kept.error().message);
        runner.validate_tuned();
        outcome = run_as_it_is(stream, padded.outside);
    }
    shapes.give_back(*stream);
    return outcome;
}

/// Handles the call in arguments.frame().
Outcome Function::Impl::call_read(const Stream& stream, NextJob& job)
{
    const auto change = surroundings.notice();
    if (!change.drops_all.empty()) {
        loaded.erase_all(change.drops_all);
        outcomes.forget_verdicts();
    }
    if (change.exposed)
        loaded.erase_if([this](const LoadedVariant& variant) { return !lookup.is_still_valid(variant); });
    const Frame& frame = arguments.frame();
    const guards::ChangedTensors others =
        shapes.is_padded() ? guards::ChangedTensors{} : arguments.changed_tensors(); // padding changes tensors
    for (auto variant = loaded.begin(); variant != loaded.end(); ++variant) {
        if (!variant->guard.matches(frame.tensors, frame.values, others)) continue;
        if (variant->use == LoadedVariant::Use::waits) {
            // Forward may pass values to backward in its own scratch, which a replay would not fill. So forward is
            // replayed only when backward is known to use no such values.
            const Digest digest = variant->guards_digest;
            loaded.note_served(*variant);
            return run_as_it_is(stream, "its backward is not recorded yet", &digest);
        }
        if (variant->use == LoadedVariant::Use::runs_as_it_is) {
            const Digest digest = variant->guards_digest;
            return run_as_it_is(stream, "its backward cannot be recorded", &digest);
        }
        ++variant->calls;
        // Verifies each Nth replayed call, if the declaration says so. first_call() handles first calls.
        const std::uint64_t every = declaration->verify_every;
        if (every != 0 && declaration->callable && variant->calls % every == 0 && !jobs.has_pending()) {
            FirstCall first_call = new_first_call();
            surroundings.describe(frame, first_call);
            return answer_and_verify(loaded.take(variant), first_call, stream, job);
        }
        auto launched = loaded.launch(*variant, stream, arguments, runner, replay::AskedCapture::yes);
        // stale: the variant is for another kind of memory (host or device), which only some variants need.
        if (!launched && launched.error().code == ErrorCode::stale) continue;
        if (!launched) return run_instead(variant, launched.error(), stream);
        loaded.use(variant);
        outcomes.count_replay();
        return Outcome::replayed;
    }
    return serve_first_call(stream, "", job);
}

/// Handles a failed replay: counts and reports it, and the next call loads the entry anew. Without a callable the
/// caller gets the error.
Outcome Function::Impl::run_instead(LoadedVariants::Iterator failed, const Error& failure, const Stream& stream)
{
    lookup.note_failure("replay", failure);
    const Digest digest = failed->guards_digest;
    loaded.erase(failed);
    if (!declaration->callable)
        raise(within(fmt::format("{} has no callable that could run instead of its graph", declaration->path), failure)
                  .error());
    return run_as_it_is(stream, failure.message, &digest);
}

/// Runs a call that is not a miss.
Outcome Function::Impl::run_as_it_is(const Stream& stream, std::string why, const Digest* entry)
{
    FirstCall first_call;
    const Outcome outcome = outcomes.report_as_it_is(std::move(why), entry);
    runner.run(arguments.frame(), stream, first_call.phases);
    return outcome;
}

// --- a call that no loaded variant answers

Outcome Function::Impl::serve_first_call(const Stream& stream, std::string why_not, NextJob& job)
{
    FirstCall first_call = new_first_call();
    first_call.reason = std::move(why_not);
    surroundings.describe(arguments.frame(), first_call);
    if (const auto known = outcomes.verdict(first_call.digest)) {
        runner.run(arguments.frame(), stream, first_call.phases);
        return *known;
    }
    const auto pause = lookup.pause_preloading();
    const Plan plan = [&] {
        const auto timer = first_call.phases.measure("look up");
        return lookup.decide(first_call, jobs.has_pending());
    }();
    const Outcome outcome = plan.action == Plan::Action::replay ? replay_stored(plan, first_call, stream, job)
                                                                : miss(plan, first_call, stream, job);
    if (!job) outcomes.end_report(first_call); // if there is a job, complete() ends the report
    return outcome;
}

Outcome Function::Impl::replay_stored(const Plan& plan, FirstCall& first_call, const Stream& stream, NextJob& job)
{
    const bool verifies = declaration->verifies_first && declaration->callable;
    if (verifies) runner.validate_tuned(); // the verification also runs the callable
    if (verifies && jobs.has_pending()) return answer_and_verify(std::nullopt, first_call, stream, job);
    EntryRefusal unusable{first_call.reason};
    bool is_restored_again = false;
    for (auto entry = plan.entries.begin(); entry != plan.entries.end(); ++entry) {
        const cachefmt::EntryKey& key = *entry;
        auto loading = lookup.load(key, arguments.frame(), *stream, first_call.phases);
        if (!loading) {
            unusable = std::move(loading.error());
            first_call.tried = true;
            continue;
        }
        if (verifies) return answer_and_verify(std::move(*loading), first_call, stream, job);
        const auto variant = loaded.keep(std::move(*loading));
        const Milliseconds load_time = system_clock().steady() - first_call.started;
        Result<void> launched;
        {
            const auto timer = first_call.phases.measure("first launch");
            launched = loaded.launch(*variant, stream, arguments, runner);
        }
        if (launched) {
            outcomes.count_hit(*variant, !role || role->counts_hit());
            lookup.note_addresses(arguments.frame());
            // The preloaded graph's work is enqueued and runs meanwhile. Instantiates the graph now, so that its memory
            // is taken before the program plans with the remaining device memory.
            if (!variant->executable->is_complete()) {
                const auto timer = first_call.phases.measure("instantiate");
                if (auto completed = loaded.complete(*variant); !completed)
                    log().warn("{} could not be instantiated, and its next call tries again: {}", declaration->path,
                               completed.error().message);
            }
            log().info("loaded {} {} in {} ({})", declaration->path, short_hex(key.guards_digest),
                       time_text(load_time.count()), variant->made);
            return outcomes.finish(first_call, Outcome::replayed, "", Remember::no);
        }
        // The preloaded graph may have been restored for another kind of memory (host or device).
        if (launched.error().code == ErrorCode::stale && !std::exchange(is_restored_again, true)) {
            loaded.erase(variant);
            --entry;
            continue;
        }
        lookup.note_failure("replay", launched.error());
        loaded.erase(variant);
        unusable = {launched.error().message, launched.error().code};
        first_call.tried = true;
    }
    if (!declaration->callable) first_call.failure = unusable.code; // nothing will be recorded instead
    auto instead = lookup.on_miss(first_call, jobs.has_pending(), unusable.reason);
    if (unusable.must_not_record) instead = {Plan::Action::refuse, {}, unusable.reason};
    return miss(instead, first_call, stream, job);
}

Outcome Function::Impl::miss(const Plan& plan, FirstCall& first_call, const Stream& stream, NextJob& job)
{
    // If the reason does not last, another call is recording, and that call has already counted the miss.
    if (declaration->policy != Policy::off && plan.lasts)
        outcomes.count_miss(plan, !role ? declaration->name : role->counts_miss() ? role->pair : "", first_call);
    if (declaration->policy == Policy::require_hit || !declaration->callable) outcomes.finish_thrown(first_call);
    if (declaration->policy == Policy::require_hit)
        raise({ErrorCode::miss_forbidden, fmt::format("'{}' must hit (policy require_hit), but there is no usable "
                                                      "entry: {}; record it first with policy read_write",
                                                      declaration->name, plan.reason)});
    if (!declaration->callable)
        raise(
            {first_call.failure.value_or(ErrorCode::miss_forbidden),
             fmt::format("'{}' can only be replayed (it was loaded without a callable), but there is no usable entry: "
                         "{}; record it where its callable is (Cache::wrap), or adopt its graph (Cache::adopt)",
                         declaration->name, plan.reason)});
    first_call.reason = plan.reason;
    runner.validate_tuned();
    if (plan.action == Plan::Action::record) return answer_and_record(first_call, stream, job);
    const bool refused = plan.action == Plan::Action::refuse;
    if (refused) outcomes.count_refusal(plan.analysis.word);
    const Outcome outcome = run_missed(first_call, refused ? Outcome::refused : Outcome::eager, plan.reason,
                                       plan.lasts ? Remember::yes : Remember::no, stream);
    if (!plan.lasts) job = jobs.take_pending(*stream);
    return outcome;
}

/// Runs the function for a miss. Remembers the verdict first, so that a callable that throws is not recorded at every
/// call.
Outcome Function::Impl::run_missed(FirstCall& first_call, Outcome outcome, std::string why, Remember remember,
                                   const Stream& stream)
{
    outcomes.finish(first_call, outcome, std::move(why), remember);
    runner.run_measured(arguments.frame(), stream, first_call.phases);
    return outcome;
}

// --- recording around the call's own answer: the function runs in the caller's stream, on the caller's memory.
// Recording and comparing follow afterwards, without the lock.

Outcome Function::Impl::answer_and_record(FirstCall& first_call, const Stream& stream, NextJob& job)
{
    auto lock = jobs.publisher().try_lock(first_call.digest); // after an error the call records without the lock
    if (lock && !*lock)
        return run_missed(first_call, Outcome::eager, "another process is recording it", Remember::no, stream);
    // The lock's last holder may have published since the look-up.
    if (declaration->policy != Policy::refresh) {
        const auto again = lookup.decide(first_call, jobs.has_pending());
        if (again.action == Plan::Action::replay && !first_call.tried)
            if (auto loading = lookup.load(again.entries.front(), arguments.frame(), *stream, first_call.phases)) {
                outcomes.count_hit(*loading, !role || role->counts_hit());
                const auto variant = loaded.keep(std::move(*loading));
                if (loaded.launch(*variant, stream, arguments, runner))
                    return outcomes.finish(first_call, Outcome::replayed, "another process recorded it meanwhile",
                                           Remember::no);
                loaded.erase(variant);
            }
    }
    runner.order_after_last(stream);
    const auto idle = is_idle(*stream);
    if (idle && !*idle)
        return run_missed(first_call, Outcome::eager,
                          "work that was enqueued before the call is not done: a later call is recorded", Remember::no,
                          stream);
    job = jobs.new_job(arguments.frame(), role.get(), first_call, surroundings.environment(), runner);
    if (lock) job->lock = std::move(*lock);
    jobs.hold_code(*job);
    if (!idle) job->refusal = idle.error();
    jobs.answer(job, stream, runner);
    if (job->refusal) {
        const auto refused = std::exchange(job, nullptr);
        auto completed = jobs.refuse(*refused, *refused->refusal, outcomes);
        outcomes.finish(refused->first_call, completed.outcome, std::move(completed.reason), completed.remember);
        outcomes.end_report(refused->first_call);
        return completed.outcome;
    }
    jobs.begin();
    if (!jobs.is_on_demand() && !job->session->waits_outside())
        return Outcome::recorded; // complete() sets the final outcome
    outcomes.finish(job->first_call, Outcome::eager,
                    jobs.is_on_demand() ? "it is recorded by the next Cache::record_pending"
                                        : "it waits for events or semaphores of the caller: it is recorded by a later "
                                          "call, when this call's work has finished",
                    Remember::no);
    outcomes.end_report(job->first_call);
    jobs.defer(job);
    return Outcome::eager;
}

/// `variant` is nullopt if another job of the function is under way. The function then runs without a graph.
Outcome Function::Impl::answer_and_verify(std::optional<LoadedVariant> variant, FirstCall& first_call,
                                          const Stream& stream, NextJob& job)
{
    if (!variant) {
        const Outcome outcome =
            run_missed(first_call, Outcome::eager, "another call of it is being compared", Remember::no, stream);
        outcomes.end_report(first_call);
        job = jobs.take_pending(*stream);
        return outcome;
    }
    runner.order_after_last(stream);
    const auto idle = is_idle(*stream);
    if (!idle || !*idle) // not verified now: the next call loads the entry again
        return run_missed(first_call, Outcome::eager,
                          "work that was enqueued before the call is not done: a later call verifies the entry",
                          Remember::no, stream);
    job = jobs.new_job(arguments.frame(), role.get(), first_call, surroundings.environment(), runner);
    variant->mark.reset(); // the function runs before the graph, so this is not a launch yet
    job->verified = std::move(*variant);
    job->records = declaration->publishes;
    jobs.answer(job, stream, runner);
    jobs.begin();
    if (job->refusal || !job->session->waits_outside()) return Outcome::replayed;
    outcomes.finish(job->first_call, Outcome::eager,
                    "it waits for events or semaphores of the caller: a later call compares its entry, when this "
                    "call's work has finished",
                    Remember::no);
    outcomes.end_report(job->first_call);
    jobs.defer(job);
    return Outcome::eager;
}

/// Called without the lock, once for each job that was begun.
Outcome Function::Impl::complete(RecordJob& job)
{
    struct JobScope {
        Impl& impl;
        ~JobScope()
        {
            const std::scoped_lock lock{impl.mutex};
            impl.jobs.finish();
        }
    } ended{*this};
    auto completed = jobs.complete(job, role.get(), lookup, outcomes);
    const std::scoped_lock lock{mutex};
    if (completed.variant) loaded.keep(std::move(*completed.variant));
    outcomes.finish(job.first_call, completed.outcome, std::move(completed.reason), completed.remember);
    outcomes.end_report(job.first_call);
    return completed.outcome;
}

std::size_t Function::Impl::record_pending()
{
    NextJob job;
    {
        const auto locked = lock("recorded");
        job = jobs.take_answered();
    }
    return job && complete(*job) == Outcome::recorded ? 1 : 0;
}

ProfileRecording Function::Impl::record(const std::vector<ProfiledShape>& wanted, const MakeArguments& make)
{
    ProfileRecording result;
    result.shapes = wanted.size();
    const auto& stream = declaration->device->default_stream;
    for (const ProfiledShape& shape : wanted) {
        if (runner.is_retired()) break;
        const std::vector<Arg> args = make(shape);
        require_sizes(args, shape, declaration->interface);
        Outcome outcome = call(stream, args, replay::AskedCapture::no, false);
        {
            const std::scoped_lock one_at_a_time{declaration->device->default_stream_mutex};
            // Afterwards arguments may be freed, and waiting recordings can be completed.
            value_or_raise(stream->synchronize());
        }
        if (outcome == Outcome::eager && record_pending() != 0) outcome = Outcome::recorded;
        if (outcome == Outcome::recorded) {
            ++result.recorded;
        } else if (outcome == Outcome::replayed) {
            ++result.replayed;
        } else {
            const auto locked = lock("asked for its report");
            result.problems.push_back(fmt::format("{}: {}", text_of(shape), outcomes.report().reason));
        }
    }
    log().info("{}: {} of {} shapes of its profile were recorded now, {} were recorded before", declaration->path,
               result.recorded, result.shapes, result.replayed);
    return result;
}

// --- graphs that other code captured

namespace {

/// Puts the second capture's scratch in the order of the first capture's scratch.
void align_scratch(const std::string& name, const AdoptedCapture& first, AdoptedCapture& second)
{
    std::vector<std::pair<std::string, MemoryRef>> ordered;
    for (const auto& [scratch, memory] : first.scratch) {
        const auto same = std::ranges::find(second.scratch, scratch, &std::pair<std::string, MemoryRef>::first);
        if (same == second.scratch.end() || same->second.size != memory.size)
            raise({ErrorCode::invalid_argument,
                   fmt::format("the second capture of '{}' has no scratch '{}' of {} bytes: give each capture the same "
                               "scratch regions at other addresses",
                               name, scratch, memory.size)});
        ordered.push_back(*same);
    }
    if (second.scratch.size() != ordered.size())
        raise({ErrorCode::invalid_argument,
               fmt::format("the second capture of '{}' has {} scratch regions, the first {}: give each capture the "
                           "same scratch regions at other addresses",
                           name, second.scratch.size(), ordered.size())});
    second.scratch = std::move(ordered);
}

} // namespace

std::string Function::Impl::write_capture(const Adoption& adoption)
{
    const std::scoped_lock lock{mutex};
    arguments.read(adoption.first, adoption);
    FirstCall first_call;
    surroundings.describe(arguments.frame(), first_call);
    return jobs.write_capture(adoption, arguments.frame(), first_call.digest);
}

void Function::Impl::adopt(const Adoption& adoption)
{
    const std::scoped_lock lock{mutex};
    arguments.read(adoption.first, adoption);
    const AdoptedCapture first = jobs.adopted_capture(adoption.first, arguments.frame());
    std::optional<AdoptedCapture> second;
    if (adoption.second) {
        Frame moved;
        arguments.read(*adoption.second, adoption, moved);
        second = jobs.adopted_capture(*adoption.second, moved);
        align_scratch(declaration->name, first, *second);
    }
    FirstCall first_call = new_first_call();
    surroundings.describe(arguments.frame(), first_call);
    jobs.require_adoptable(first_call);

    const auto record_lock = jobs.wait_for_lock(first_call.digest);
    outcomes.note_adoption();
    const auto keeps_code = value_or_raise(declaration->backend()->recording().hold_recording());
    EntryComparison beside;
    auto recording =
        jobs.adopt(adoption, arguments.frame(), first, second ? &*second : nullptr, first_call, lookup, beside);
    if (!recording) {
        // not_found: no other process has left a capture yet.
        if (recording.error().code != ErrorCode::not_found) outcomes.count_refusal(recording.error());
        raise(within(fmt::format("cannot adopt '{}'", declaration->name), recording.error()).error());
    }
    if (const auto& part = adoption.part)
        recording->entry.header.recording = {{part->high, part->low},
                                             part->half == PairHalf::forward ? cachefmt::Part::forward
                                                                             : cachefmt::Part::backward};
    const std::string unpublished = jobs.keep_adopted(first_call, *recording, beside, outcomes);
    if (!unpublished.empty())
        log().warn("'{}' is adopted, but only in this process: {}", declaration->name, unpublished);
    outcomes.count_recording(recording->entry.header.info.record_ms);
    const auto variant = loaded.keep(lookup.variant_of(recording->entry.header, std::move(recording->executable)));
    variant->only_here = !unpublished.empty();
    outcomes.finish(first_call, Outcome::recorded, unpublished, Remember::no);
    outcomes.end_report(first_call);
}

// --- the public class

Function::Function(std::shared_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&& other) noexcept
{
    std::swap(m_impl, other.m_impl);
    return *this;
}

// The callable may destroy the function and the stream, so the call keeps both until it ends.

Outcome Function::call(std::span<const Arg> args)
{
    const auto impl = m_impl;
    return impl->call(impl->declaration->device->default_stream, args);
}
Outcome Function::call(Stream& stream, std::span<const Arg> args)
{
    const auto impl = m_impl;
    const auto target = StreamAccess::impl(stream).stream;
    return impl->call(target, args);
}
Outcome Function::call_uncaptured(Stream& stream, std::span<const Arg> args)
{
    const auto impl = m_impl;
    const auto target = StreamAccess::impl(stream).stream;
    return impl->call(target, args, replay::AskedCapture::yes);
}
void Function::bind(std::string_view state, const MemoryRef& memory)
{
    const auto lock = m_impl->lock("bound");
    m_impl->arguments.bind(state, memory);
}
Report Function::report() const
{
    const auto lock = m_impl->lock("asked for its report");
    return m_impl->outcomes.report();
}
std::vector<Miss> Function::misses() const
{
    const auto lock = m_impl->lock("asked for its misses");
    return m_impl->outcomes.misses();
}
std::vector<ProfiledShape> Function::shapes() const
{
    const auto lock = m_impl->lock("asked for its shapes");
    return m_impl->shapes.counted();
}
std::vector<std::vector<std::int64_t>> Function::buckets() const
{
    const auto lock = m_impl->lock("asked for its buckets");
    return m_impl->shapes.buckets();
}

} // namespace warmgraph
