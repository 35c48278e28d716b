// Function::Impl, the way of a graph that somebody else captured: described like a call, recorded, kept.
#include <algorithm>

#include "capture_folder.hpp"
#include "function_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/clear_stack.hpp"

namespace warmgraph {

/// The capture as if it were a call.
void Function::Impl::read_capture(const NativeCapture& capture, const Adoption& adoption, Frame& frame)
{
    std::vector<Arg> args;
    for (const auto& [name, memory] : capture.regions) args.emplace_back(name, memory);
    for (const auto* numbers : {&capture.scalars, &adoption.values})
        for (const auto& [name, number] : *numbers) {
            Arg& arg = args.emplace_back(name, MemoryRef{});
            arg.value = number;
        }
    value_or_raise(m_reader.read(args, frame));
}

AdoptedCapture Function::Impl::adopted_capture(const NativeCapture& capture, const Frame& frame) const
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
    result.handles = {handles(capture.events, m_subject.handles.events),
                      handles(capture.semaphores, m_subject.handles.semaphores)};
    return result;
}

namespace {

/// The second capture's scratch in the order of the first's.
void align_scratch(const std::string& name, const AdoptedCapture& first, AdoptedCapture& second)
{
    std::vector<std::pair<std::string, MemoryRef>> ordered;
    for (const auto& [scratch, memory] : first.scratch) {
        const auto same = std::ranges::find(second.scratch, scratch, &std::pair<std::string, MemoryRef>::first);
        if (same == second.scratch.end() || same->second.size != memory.size)
            raise({ErrorCode::invalid_argument,
                   fmt::format("the second capture of '{}' has no scratch '{}' of {} bytes: give each capture the same "
                               "regions, elsewhere",
                               name, scratch, memory.size)});
        ordered.push_back(*same);
    }
    if (second.scratch.size() != ordered.size())
        raise(
            {ErrorCode::invalid_argument,
             fmt::format("the second capture of '{}' has {} scratch regions, the first {}: give each capture the same "
                         "regions, elsewhere",
                         name, second.scratch.size(), ordered.size())});
    second.scratch = std::move(ordered);
}

} // namespace

/// What stands in the way before anything is looked at.
void Function::Impl::require_adoptable(const Journey& journey) const
{
    if (m_policy == Policy::require_hit)
        raise(
            {ErrorCode::miss_forbidden,
             fmt::format("'{}' is adopted under policy require_hit, which records nothing: use Cache::load", m_name)});
    if (!m_cache->store || m_policy == Policy::refresh) return;
    const auto known = m_cache->store->header({m_key, journey.digest});
    if (known && *known && (**known).kind == cachefmt::EntryKind::tombstone)
        raise({ErrorCode::not_recordable,
               fmt::format(
                   "'{}' was recorded twice under the same guards with different graphs ({}): give what changed as "
                   "a guard (Spec::config or Spec::version), or adopt it under policy refresh",
                   m_name, fmt::join((**known).info.difference, "; "))});
}

/// An adoption has nothing else to do meanwhile. Without the lock where its holder outlives the limit, or the folder
/// fails.
void Function::Impl::wait_for_record_lock(const Journey& journey, std::unique_ptr<FileLock>& lock)
{
    constexpr std::chrono::milliseconds k_poll{5};
    const auto deadline = system_clock().steady() + std::chrono::milliseconds{m_cache->options.record_wait_ms};
    while (true) {
        auto taken = m_cache->store->try_record_lock({m_key, journey.digest});
        if (!taken) {
            cache_fault("lock", taken.error());
            return;
        }
        lock = std::move(*taken);
        if (lock || system_clock().steady() >= deadline) return;
        system_clock().sleep_for(k_poll);
    }
}

/// Empty, or why the recording stays in this process only.
std::string Function::Impl::keep_recording(Journey& journey, Recording& recording, const Stored& stored)
{
    if (!m_cache->store) return "not published: caching is off: " + m_cache->disabled_reason;
    if (!publishes()) return fmt::format("not published: policy {}", m_policy == Policy::off ? "off" : "read_only");
    if (stored.is == Stored::Is::recompiled) {
        const std::string difference = publish_tombstone(recording.entry, stored);
        count_refusal("recompiled");
        raise({ErrorCode::not_recordable,
               fmt::format(
                   "'{}' was recorded before under the same guards with a different graph: {}; give what changed as a "
                   "guard (Spec::config or Spec::version)",
                   m_name, difference)});
    }
    return publish(journey.phases, recording, stored);
}

/// With the first of other processes' captures that proves it.
Result<Recording> Function::Impl::adopted_with_others(const AdoptedCapture& first, AdoptOptions options,
                                                      const std::string& folder, Journey& journey)
{
    auto found = [&]() -> Result<CaptureFolder::Found> {
        auto opened = CaptureFolder::open(posix_file_system(), folder, false);
        if (!opened) return std::unexpected(opened.error());
        return opened->find({m_key, journey.digest});
    }();
    if (!found) return within(fmt::format("captures of other processes in {}", folder), found.error());
    for (const std::string& ignored : found->ignored) log().info("a capture of '{}' is not used: {}", m_name, ignored);
    std::vector<std::string> reasons = std::move(found->ignored);
    for (const StoredCapture& capture : found->captures) {
        options.stored = &capture;
        auto recording = warmgraph::adopt(m_subject, m_frame, new_header(journey), first, nullptr, options,
                                          m_cache->modules, journey.phases);
        const bool may_be_another = !recording && recording.error().code == ErrorCode::not_recordable;
        if (!may_be_another) {
            m_cache->counters.captures_read(recording ? 1 : 0, reasons.size());
            return recording;
        }
        log().info("the capture of '{}' that process {} wrote proves nothing: {}", m_name, capture.process,
                   recording.error().message);
        reasons.push_back(std::move(recording.error().message));
    }
    m_cache->counters.captures_read(0, reasons.size());
    if (found->captures.empty())
        return fail(ErrorCode::not_found, "no other process's capture of this call is in {}{}{}", folder,
                    reasons.empty() ? "" : ": ", fmt::join(reasons, "; "));
    return fail(ErrorCode::not_recordable, "{}", reasons.back());
}

namespace {

/// An exception of the caller's is a refusal.
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

Result<Recording> Function::Impl::adopted(const Adoption& adoption, const AdoptedCapture& first,
                                          const AdoptedCapture* second, Journey& journey, Stored& stored)
{
    AdoptOptions options{.proof = adoption.unproven == Unproven::allow ? Proof::allow_unproven : Proof::required,
                         .unused = m_spec.strict ? UnusedWords::refused : UnusedWords::tried,
                         .frozen_variables = m_spec.frozen_variables,
                         .most_constant_bytes = m_spec.max_constant_bytes,
                         .keeps_undeclared = m_spec.undeclared == Undeclared::constants};
    options.after_run = refusing(adoption.after_run);
    options.agreement = refusing(adoption.agreement);
    if (publishes())
        options.compare = [&](const cachefmt::Entry& recorded, const HoldToAnswer& hold) -> Result<void> {
            auto judged = judge_stored(recorded, m_frame, hold);
            if (!judged) return std::unexpected(judged.error());
            stored = std::move(*judged);
            return {};
        };
    if (!adoption.captures.empty()) return adopted_with_others(first, options, adoption.captures, journey);
    return warmgraph::adopt(m_subject, m_frame, new_header(journey), first, second, options, m_cache->modules,
                            journey.phases);
}

std::string Function::Impl::write_capture(const Adoption& adoption)
{
    const std::scoped_lock lock{m_mutex};
    read_capture(adoption.first, adoption, m_frame);
    Journey journey;
    describe_call(journey);
    const auto capture = value_or_raise(
        capture_for_others(m_subject, m_frame, {m_key, journey.digest}, adopted_capture(adoption.first, m_frame)));
    auto folder = value_or_raise(CaptureFolder::open(posix_file_system(), adoption.captures, true));
    auto name = value_or_raise(folder.write(capture));
    m_cache->counters.capture_written();
    return name;
}

void Function::Impl::adopt(const Adoption& adoption)
{
    const std::scoped_lock lock{m_mutex};
    read_capture(adoption.first, adoption, m_frame);
    const AdoptedCapture first = adopted_capture(adoption.first, m_frame);
    std::optional<AdoptedCapture> second;
    if (adoption.second) {
        Frame moved;
        read_capture(*adoption.second, adoption, moved);
        second = adopted_capture(*adoption.second, moved);
        align_scratch(m_name, first, *second);
    }
    Journey journey;
    journey.started = system_clock().steady();
    describe_call(journey);
    require_adoptable(journey);

    std::unique_ptr<FileLock> record_lock;
    if (publishes()) wait_for_record_lock(journey, record_lock);
    m_cache->quiet.note_miss();
    const auto keeps_code = value_or_raise(m_device->device->recording().hold_recording());
    Stored stored;
    auto recording = adopted(adoption, first, second ? &*second : nullptr, journey, stored);
    if (!recording) {
        if (recording.error().code != ErrorCode::not_found) // nobody has left a capture yet
            count_refusal(to_string(recording.error().code));
        if (m_cache->store && is_for_unkept_code(recording.error())) note_unkept_code(*m_cache->store, m_key);
        raise(within(fmt::format("cannot adopt '{}'", m_name), recording.error()).error());
    }
    const std::string unpublished = keep_recording(journey, *recording, stored);
    if (!unpublished.empty()) log().warn("'{}' is adopted in this process only: {}", m_name, unpublished);
    m_cache->counters.recording();
    keep(variant_of(recording->entry.header.guards, journey.digest, std::move(recording->executable)));
    m_variants.front().only_here = !unpublished.empty();
    finish(journey, Outcome::recorded, unpublished, Remember::no);
    end_report(journey);
}

void clear_stack() noexcept { capture::clear_stack_below(); }

} // namespace warmgraph
