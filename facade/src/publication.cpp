// Function::Impl, the way of a miss: one recorder at a time, record, publish, launch what was verified.
#include <algorithm>
#include <chrono>

#include "function_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/verify_on_load.hpp"

namespace warmgraph {

namespace {
constexpr std::chrono::milliseconds k_poll{5};

/// Why no other process could use what is recorded under these facts; empty where one could.
std::string unusable_elsewhere(const std::vector<cachefmt::Fact>& facts)
{
    for (const auto& fact : facts)
        if (fact.role == cachefmt::Role::must_match && fact.value == cachefmt::k_unknown)
            return fmt::format("'{}' could not be found out here, so that nothing could ever match it{}", fact.name,
                               fact.name == "code.build_id" ? ": set Spec::version" : "");
    return {};
}

/// The graph without the constants that libraries' kernels were given (images that nobody here compiled). Their by-value
/// structs have padding that holds whatever lay there: measured, cuBLAS 13 leaves stack and heap addresses in it.
cachefmt::Graph without_library_constants(cachefmt::Graph graph)
{
    for (auto& node : graph.nodes) {
        auto* const kernel = std::get_if<cachefmt::KernelNode>(&node);
        if (kernel == nullptr || graph.images[kernel->image].origin != Digest{}) continue;
        for (auto& param : kernel->params) std::ranges::fill(param.value, std::byte{0});
    }
    return graph;
}

std::string created_by() { return fmt::format("warmgraph {}", WARMGRAPH_VERSION); }
} // namespace

/// True when another process published meanwhile and its entry is loaded. The lock is held on return unless its holder
/// outlived the limit or the folder failed: then this process records for itself.
bool Function::Impl::wait_for_other_recorder(Journey& journey, std::unique_ptr<FileLock>& lock)
{
    const Waited waited = take_record_lock(journey, lock);
    if (waited == Waited::failed) return false;
    // Whoever held the lock may have published between the look-up and now, also when no waiting was needed.
    if (waited == Waited::no && (refreshes() || journey.load_failure)) return false;
    const cachefmt::EntryKey key{m_key, journey.digest};
    auto header = m_cache->store->header(key);
    // Equal digests are not enough: a fact that could not be found out matches nothing, not even itself.
    return header && *header && (**header).kind == cachefmt::EntryKind::graph &&
           guards::evaluate((**header).guards, journey.now, m_cache->relaxation).empty() && load(journey, key);
}

auto Function::Impl::take_record_lock(Journey& journey, std::unique_ptr<FileLock>& lock) -> Waited
{
    const auto deadline = system_clock().steady() + std::chrono::milliseconds{m_cache->options.record_wait_ms};
    const cachefmt::EntryKey key{m_key, journey.digest};
    const auto started = system_clock().steady();
    bool waited = false;
    while (true) {
        auto taken = m_cache->store->try_record_lock(key);
        if (!taken) {
            cache_fault("lock", taken.error());
            return Waited::failed;
        }
        lock = std::move(*taken);
        if (lock || system_clock().steady() >= deadline) break;
        waited = true;
        system_clock().sleep_for(k_poll);
    }
    if (waited) journey.phases.add("wait", system_clock().steady() - started);
    return waited ? Waited::yes : Waited::no;
}

/// Whether the entry on disk, with its other constants for libraries' kernels, still does what the function does. One that
/// cannot be restored any more (its images are gone) says nothing against the new recording.
bool Function::Impl::differs_in_padding_only(const cachefmt::Graph& previous, const Recording& recording,
                                             const std::shared_ptr<backends::Stream>& stream)
{
    if (cachefmt::graph_digest(without_library_constants(previous)) !=
        cachefmt::graph_digest(without_library_constants(recording.entry.graph)))
        return false;
    if (!stream) return true; // adopted: its version is the caller's word, and the new one was verified just now
    Phases unmeasured;
    auto restored =
        restore(recording.entry.header.key, store::Reading::ahead, m_frame.memory, m_frame.scalars, unmeasured);
    if (!restored || !*restored) return true;
    order_after_last(stream);          // what the callable holds, the last launch may still be using
    auto idle = stream->synchronize(); // the caller's memory is about to be read
    auto verified = idle ? compare_with_function(*(**restored).executable, unmeasured) : idle;
    // Memory of the caller's that was used in place is damaged: the function itself would compute with it.
    if (!verified && verified.error().code == ErrorCode::partly_launched)
        raise(within(label(), verified.error()).error());
    if (verified)
        log().debug("{}: only constants of libraries' kernels differ from the entry on disk, and both do the same",
                    label());
    return verified.has_value();
}

/// A second recording under the same guards that differs means that the function is not a function of its guards.
bool Function::Impl::tombstone_if_different(const Recording& recording, const std::shared_ptr<backends::Stream>& stream)
{
    const auto& key = recording.entry.header.key;
    if (!unusable_elsewhere(recording.entry.header.guards.facts).empty()) return false;
    auto previous = m_cache->store->entry(key);
    if (!previous || !*previous || (**previous).header.kind != cachefmt::EntryKind::graph) return false;
    if (cachefmt::graph_digest((**previous).graph) == cachefmt::graph_digest(recording.entry.graph)) return false;
    if (differs_in_padding_only((**previous).graph, recording, stream)) return false;
    cachefmt::Entry tombstone{recording.entry.header, {}};
    tombstone.header.kind = cachefmt::EntryKind::tombstone;
    tombstone.header.info.reason = "recompiled";
    tombstone.header.info.difference = cachefmt::difference((**previous).graph, recording.entry.graph);
    log().warn("refused {} {}: recompiled, a second recording under the same guards differs: {}", label(),
               short_hex(key.guards), fmt::join(tombstone.header.info.difference, "; "));
    if (auto published = m_cache->store->publish(tombstone); !published)
        cache_fault("publish tombstone", published.error());
    return true;
}

/// Empty, or why nothing was published (the recording itself stays usable in this process).
std::string Function::Impl::publish(Journey& journey, Recording& recording)
{
    const auto timer = journey.phases.measure("publish");
    if (const auto why = unusable_elsewhere(recording.entry.header.guards.facts); !why.empty()) {
        log().warn("{} is not published: {}", label(), why);
        return "not published: " + why;
    }
    std::uint64_t bytes = 0;
    for (const auto& [digest, image] : recording.images) {
        bytes += image.size();
        if (auto published = m_cache->store->publish_image(image); !published) {
            cache_fault("publish", published.error());
            return "not published: " + published.error().message;
        }
    }
    if (auto published = m_cache->store->publish(recording.entry); !published) {
        cache_fault("publish", published.error());
        return "not published: " + published.error().message;
    }
    const auto& info = recording.entry.header.info;
    log().info("saved {} {} ({} nodes, {} images of {} KB, verified {}, {}, format {})", label(),
               short_hex(journey.digest), info.node_count, info.image_count, bytes / 1024, info.verification,
               info.created, cachefmt::k_format_version);
    store::FunctionUsage usage;
    usage.recordings = 1;
    m_cache->store->add_usage(m_key, usage);
    return {};
}

cachefmt::EntryHeader Function::Impl::new_header(const Journey& journey) const
{
    cachefmt::EntryHeader header{{m_key, journey.digest}, cachefmt::EntryKind::graph, journey.now, {}};
    header.info.created = to_iso8601(system_clock().wall());
    header.info.created_by = created_by();
    return header;
}

void Function::Impl::count_refusal()
{
    m_cache->counters.refusal();
    if (!m_cache->store) return;
    store::FunctionUsage usage;
    usage.refusals = 1;
    m_cache->store->add_usage(m_key, usage);
}

/// Copies of the function's memory may be more than the host has. What the callable throws passes through.
Result<Recording> Function::Impl::record_or_refuse(Journey& journey)
try {
    return record(m_subject, m_frame, new_header(journey), m_cache->modules, journey.phases);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory to record and verify it");
}

Outcome Function::Impl::record_and_launch(Journey& journey, const std::shared_ptr<backends::Stream>& stream)
{
    const std::string missed = journey.miss;
    std::unique_ptr<FileLock> lock;
    const bool loaded = wait_for_other_recorder(journey, lock);
    if (loaded) {
        const auto timer = journey.phases.measure("first launch");
        auto launched = launch(m_variants.front(), stream);
        if (launched) return finish(journey, Outcome::replayed, "another process recorded it meanwhile");
        cache_fault("replay", launched.error());
        m_variants.pop_front();
    }
    if (!loaded && journey.must_not_record) { // what the other process recorded
        count_refusal();
        return finish_eagerly(journey, Outcome::refused, journey.miss, stream);
    }

    order_after_last(stream);          // what the callable holds, the last launch may still be using
    auto idle = stream->synchronize(); // the caller's memory is about to be read
    auto recording = idle ? record_or_refuse(journey) : Result<Recording>{std::unexpected(idle.error())};
    // Memory of the caller's that was used in place is damaged: the function itself would compute with it.
    if (!recording && recording.error().code == ErrorCode::partly_launched)
        raise(within(label(), recording.error()).error());
    if (!recording) {
        count_refusal();
        log().warn("cannot record '{}': {}", m_name, recording.error().message);
        return finish_eagerly(journey, Outcome::refused, recording.error().message, stream);
    }

    bool differs = false;
    std::string unpublished;
    try {
        differs = tombstone_if_different(*recording, stream);
        if (!differs) unpublished = publish(journey, *recording);
    } catch (const std::bad_alloc&) {
        unpublished = "it stays in this process: no host memory to publish it";
    }
    if (differs) {
        count_refusal();
        return finish_eagerly(journey, Outcome::refused, "recompiled: a second recording under the same guards differs",
                              stream);
    }
    m_cache->counters.recording();
    keep(recording->entry.header.guards, journey.digest, std::move(recording->executable));
    {
        const auto timer = journey.phases.measure("first launch");
        if (auto launched = launch(m_variants.front(), stream); !launched) {
            return run_instead(m_variants.begin(), launched.error(), stream);
        }
    }
    return finish(journey, Outcome::recorded, unpublished.empty() ? missed : missed + "; " + unpublished);
}

} // namespace warmgraph
