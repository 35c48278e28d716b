// Function::Impl: what was recorded is published, unless a second recording under the same guards differs.
#include <algorithm>

#include "function_impl.hpp"
#include "included_headers.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph {

namespace {
/// Why no other process could use what is recorded under these facts; empty where one could.
std::string unusable_elsewhere(const std::vector<cachefmt::Fact>& facts)
{
    for (const auto& fact : facts)
        if (fact.role == cachefmt::Role::must_match && fact.value == cachefmt::k_unknown)
            return fmt::format("'{}' could not be found out here, so that nothing could ever match it{}", fact.name,
                               fact.name == cachefmt::fact::k_build_id                ? ": set Spec::version"
                               : fact.name.starts_with(cachefmt::fact::k_environment) ? ": it names files that only "
                                                                                        "the compiler reads"
                                                                                      : "");
    return {};
}

/// Of programs with headers that may change unseen: what includes them, and the cure.
std::string unknown_headers(const std::vector<Program>& programs)
{
    for (const Program& program : programs)
        if (const auto why = included_headers(program.source(), program.options()).why_unknown; !why.empty())
            return fmt::format(": {}. Include it by its name, or set Spec::version", why);
    return {};
}

/// The graph without the constants that libraries' kernels were given (images that nobody here compiled). Their
/// by-value structs have padding that holds whatever lay there: measured, cuBLAS 13 leaves stack and heap addresses in
/// it.
cachefmt::Graph without_library_constants(cachefmt::Graph graph)
{
    for (auto& node : graph.nodes) {
        auto* const kernel = std::get_if<cachefmt::KernelNode>(&node);
        if (kernel == nullptr || graph.images[kernel->image].origin != Digest{}) continue;
        for (auto& param : kernel->params) std::ranges::fill(param.value, std::byte{0});
    }
    return graph;
}

/// Do both enqueue the same, but for what may be another each time: where scratch lies and how much there is (an
/// allocator gives what its history leaves), and the padding above?
bool are_alike(const cachefmt::Graph& one, const cachefmt::Graph& other)
{
    const auto digest = [](const cachefmt::Graph& graph) {
        return cachefmt::graph_digest(cachefmt::without_scratch(without_library_constants(graph)));
    };
    return digest(one) == digest(other);
}

std::string created_by() { return fmt::format("warmgraph {}", WARMGRAPH_VERSION); }
} // namespace

/// What cannot be restored or run here proves nothing, whatever the cause: what was recorded takes its place. What can is
/// a recompile where it does something else, or does it in another way. partly_launched: memory of the caller's that was
/// used in place is damaged.
auto Function::Impl::judge_stored(const cachefmt::Entry& recorded, const Frame& frame, const HoldToAnswer& hold)
    -> Result<Stored>
{
    const auto& key = recorded.header.key;
    if (!unusable_elsewhere(recorded.header.guards.facts).empty()) return Stored{};
    const auto found = m_shelf->entry(key, store::Reading::use);
    if (!found || !*found || (**found).header.kind != cachefmt::EntryKind::graph) return Stored{};
    const cachefmt::Graph& stored = (**found).graph;
    if (cachefmt::graph_digest(stored) == cachefmt::graph_digest(recorded.graph)) return Stored{};
    Phases unmeasured;
    auto restored = restore(key, store::Reading::ahead, frame.memory, frame.scalars, unmeasured);
    if (!restored || !*restored) {
        log().info("{}: the entry on disk is replaced: {}", label(),
                   restored ? "it was removed meanwhile" : restored.error().message);
        return Stored{};
    }
    if (are_alike(stored, recorded.graph)) {
        const auto held = hold(std::move((**restored).executable));
        if (held) return Stored{Stored::Is::as_good};
        if (held.error().code == ErrorCode::partly_launched) return std::unexpected(held.error());
        if (held.error().code != ErrorCode::verification_failed) {
            log().info("{}: the entry on disk is replaced: {}", label(), held.error().message);
            return Stored{};
        }
    }
    return Stored{Stored::Is::recompiled, cachefmt::difference(stored, recorded.graph)};
}

/// The function is not a function of its guards: nothing is replayed for these. Returns what differs.
std::string Function::Impl::publish_tombstone(const cachefmt::Entry& recorded, const Stored& stored)
{
    cachefmt::Entry tombstone{recorded.header, {}};
    tombstone.header.kind = cachefmt::EntryKind::tombstone;
    tombstone.header.info.reason = "recompiled";
    tombstone.header.info.difference = stored.difference;
    if (auto published = m_shelf->publish(tombstone); !published) cache_fault("publish tombstone", published.error());
    return fmt::format("{}", fmt::join(stored.difference, "; "));
}

/// Empty, or why nothing was published (the recording itself stays usable in this process).
std::string Function::Impl::publish(Phases& phases, Recording& recording, const Stored& stored)
{
    const auto timer = phases.measure("publish");
    if (stored.is == Stored::Is::as_good && m_policy != Policy::refresh) {
        m_shelf->note_touched(recording.entry.header.key);
        log().info("{}: the entry on disk stands: it differs from what was recorded in scratch or padding alone, and "
                   "does the same",
                   label());
        return {};
    }
    if (auto why = unusable_elsewhere(recording.entry.header.guards.facts); !why.empty()) {
        if (why.starts_with("'program.")) why += unknown_headers(m_spec.code);
        log().warn("{} is not published: {}", label(), why);
        return "not published: " + why;
    }
    std::uint64_t bytes = 0;
    for (const auto& [digest, image] : recording.images) {
        bytes += image.size();
        const bool is_code = std::ranges::find(recording.entry.graph.images, digest, &cachefmt::ImageRef::digest) !=
                             recording.entry.graph.images.end();
        const auto kind = is_code ? store::Blob::image : store::Blob::constant;
        if (auto published = m_cache->store->publish_image(image, kind); !published) {
            cache_fault("publish", published.error());
            return "not published: " + published.error().message;
        }
    }
    const auto published = m_shelf->publish(recording.entry);
    if (!published) {
        cache_fault("publish", published.error());
        return "not published: " + published.error().message;
    }
    if (*published == Shelf::Published::kept) return {};
    m_shelf->note_touched(recording.entry.header.key);
    m_cache->programs->keep_ready();
    const auto& info = recording.entry.header.info;
    log().info("saved {} {} ({}, {} of {}, verified {}, {}, {}, format {})", label(),
               short_hex(recording.entry.header.key.guards_digest), plural(info.node_count, "node"),
               plural(info.image_count, "image"), size_text(bytes), info.verification, info.created, info.created_by,
               cachefmt::k_format_version);
    store::FunctionUsage usage;
    usage.recordings = 1;
    usage.cold = times_of(phases);
    usage.events = store::one_event(store::EventKind::recorded, "published", bytes);
    m_cache->store->add_usage(m_key, usage);
    return {};
}

cachefmt::EntryHeader Function::Impl::new_header(const Journey& journey) const
{
    cachefmt::EntryHeader header{{m_key, journey.digest}, cachefmt::EntryKind::graph, journey.now, {}};
    guards::forget_distances(header.guards.tensors); // recording puts them back where they matter
    header.info.created = to_iso8601(system_clock().wall());
    header.info.created_by = created_by();
    return header;
}

/// What was true at the call must be true of what is published.
Result<void> Function::Impl::check_facts_again(const Job& job) const
{
    if (environment_of(m_spec) == job.environment) return {};
    return fail(ErrorCode::not_recordable,
                "an environment variable that it lists changed while it was being recorded: a later call is recorded");
}

void Function::Impl::count_refusal(std::string_view reason)
{
    m_cache->counters.refusal();
    if (!m_cache->store) return;
    store::FunctionUsage usage;
    usage.refusals = 1;
    usage.events = store::one_event(store::EventKind::refused, reason);
    m_cache->store->add_usage(m_key, usage);
}

} // namespace warmgraph
