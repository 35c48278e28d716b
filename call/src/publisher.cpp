#include "warmgraph/call/publisher.hpp"

#include <algorithm>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/call/phase_times.hpp"
#include "warmgraph/precompile/included_headers.hpp"

namespace warmgraph {

namespace {
/// Returns why no other process could use a recording with these facts; empty if another process could use it.
std::string unusable_elsewhere(const std::vector<cachefmt::Fact>& facts)
{
    for (const auto& fact : facts)
        if (fact.role == cachefmt::Role::must_match && fact.value == cachefmt::k_unknown)
            return fmt::format("'{}' is not known in this process, so no call could ever match it{}", fact.name,
                               fact.name == cachefmt::fact::k_build_id                ? ": set Spec::version"
                               : fact.name.starts_with(cachefmt::fact::k_environment) ? ": it names files that only "
                                                                                        "the compiler reads"
                                                                                      : "");
    return {};
}

/// Describes the programs' includes that may change unnoticed, and gives the cure.
std::string unknown_headers(const std::vector<Program>& programs)
{
    for (const Program& program : programs)
        if (const auto why = included_headers(program.source(), program.options()).why_unknown; !why.empty())
            return fmt::format(": {}. Include it by its name, or set Spec::version", why);
    return {};
}

/// Returns the graph without the parameters of libraries' kernels (images not compiled here). Their by-value structs
/// have padding with random contents: measured, cuBLAS 13 leaves stack and heap addresses in it.
cachefmt::Graph without_library_constants(cachefmt::Graph graph)
{
    for (auto& node : graph.nodes) {
        auto* const kernel = std::get_if<cachefmt::KernelNode>(&node);
        if (kernel == nullptr || graph.images[kernel->image].origin != Digest{}) continue;
        for (auto& param : kernel->params) std::ranges::fill(param.value, std::byte{0});
    }
    return graph;
}

/// Whether both graphs do the same work, apart from the addresses and sizes of scratch (which depend on the allocator's
/// history) and the padding that without_library_constants() removes.
bool are_alike(const cachefmt::Graph& one, const cachefmt::Graph& other)
{
    const auto digest = [](const cachefmt::Graph& graph) {
        return cachefmt::graph_digest(cachefmt::without_scratch(without_library_constants(graph)));
    };
    return digest(one) == digest(other);
}

std::string created_by() { return fmt::format("warmgraph {}", WARMGRAPH_VERSION); }
} // namespace

Publisher::Publisher(std::shared_ptr<const Declaration> declaration, Sinks sinks)
    : m_declaration(std::move(declaration)), m_sinks(std::move(sinks)), m_faults(m_declaration, m_sinks.counters)
{
}

std::string Publisher::why_not() const
{
    if (!m_sinks.store) return "caching is off: " + m_sinks.why_off;
    if (m_declaration->publishes) return {};
    return fmt::format("policy {}", m_declaration->policy == Policy::off ? "off" : "read_only");
}

Result<std::unique_ptr<FileLock>> Publisher::try_lock(const Digest& digest) const
{
    auto lock = m_sinks.store->try_record_lock({m_declaration->key, digest});
    if (!lock) m_faults.note("lock", lock.error());
    return lock;
}

std::unique_ptr<FileLock> Publisher::lock(const Digest& digest, std::chrono::milliseconds limit) const
{
    constexpr std::chrono::milliseconds k_poll{5};
    const auto deadline = system_clock().steady() + limit;
    while (true) {
        auto taken = try_lock(digest);
        if (!taken || *taken || system_clock().steady() >= deadline) return std::move(taken).value_or(nullptr);
        system_clock().sleep_for(k_poll);
    }
}

std::optional<std::string> Publisher::recompiled(const Digest& digest) const
{
    if (!m_sinks.store) return std::nullopt;
    const auto known = m_sinks.store->header({m_declaration->key, digest});
    if (!known || !*known || (**known).kind != cachefmt::EntryKind::tombstone) return std::nullopt;
    return fmt::format("{}", fmt::join((**known).info.difference, "; "));
}

cachefmt::EntryHeader Publisher::new_header(const FirstCall& first_call) const
{
    cachefmt::EntryHeader header{
        {m_declaration->key, first_call.digest}, cachefmt::EntryKind::graph, first_call.now, {}};
    if (m_sinks.part) header.recording = recording_of(*m_sinks.part, first_call.now);
    guards::forget_distances(header.guards.tensors); // the recording adds the distances again if they matter
    header.info.created = to_iso8601(system_clock().wall());
    header.info.created_by = created_by();
    return header;
}

Result<EntryComparison> Publisher::judge(const cachefmt::Entry& recorded, const Lookup& lookup, const Frame& frame,
                                         const HoldToAnswer& hold) const
{
    const auto& key = recorded.header.key;
    if (!unusable_elsewhere(recorded.header.guards.facts).empty()) return EntryComparison{};
    const auto found = m_sinks.store->entry(key, store::ReadPurpose::use);
    if (!found || !*found || (**found).header.kind != cachefmt::EntryKind::graph) return EntryComparison{};
    const cachefmt::Graph& stored = (**found).graph;
    const auto& recording = (**found).header.recording;
    if (cachefmt::graph_digest(stored) == cachefmt::graph_digest(recorded.graph))
        return EntryComparison{EntryComparison::Relation::nothing, {}, recording};
    Phases unmeasured;
    auto restored = lookup.restore(key, store::ReadPurpose::preload, frame, unmeasured);
    if (!restored || !*restored) {
        log().info("{}: the entry on disk is replaced: {}", m_declaration->path,
                   restored ? "it was removed meanwhile" : restored.error().message);
        return EntryComparison{};
    }
    if (are_alike(stored, recorded.graph)) {
        const auto held = hold(std::move((**restored).executable));
        if (held) return EntryComparison{EntryComparison::Relation::as_good, {}, recording};
        if (held.error().code == ErrorCode::partly_launched) return std::unexpected(held.error());
        if (held.error().code != ErrorCode::verification_failed) {
            log().info("{}: the entry on disk is replaced: {}", m_declaration->path, held.error().message);
            return EntryComparison{};
        }
    }
    return EntryComparison{EntryComparison::Relation::recompiled, cachefmt::difference(stored, recorded.graph),
                           recording};
}

std::string Publisher::publish_tombstone(const cachefmt::Entry& recorded, const EntryComparison& beside) const
{
    cachefmt::Entry tombstone{recorded.header, {}};
    tombstone.header.kind = cachefmt::EntryKind::tombstone;
    tombstone.header.info.reason = "recompiled";
    tombstone.header.info.difference = beside.difference;
    const auto published =
        m_sinks.pair ? m_sinks.pair->publish_tombstone(tombstone) : m_sinks.store->publish(tombstone);
    if (!published) m_faults.note("publish tombstone", published.error());
    return fmt::format("{}", fmt::join(beside.difference, "; "));
}

std::string Publisher::publish(Phases& phases, Recording& recording, const EntryComparison& beside) const
{
    const auto timer = phases.measure("publish");
    const bool is_of_beside = beside.recording == recording.entry.header.recording;
    if (beside.relation == EntryComparison::Relation::as_good && is_of_beside &&
        m_declaration->policy != Policy::refresh) {
        m_sinks.touched.note(recording.entry.header.key);
        log().info("{}: the entry on disk is kept: it differs from the new recording only in scratch or padding, and "
                   "does the same",
                   m_declaration->path);
        return {};
    }
    if (auto why = unusable_elsewhere(recording.entry.header.guards.facts); !why.empty()) {
        if (why.starts_with("'program.")) why += unknown_headers(m_declaration->spec.code);
        log().warn("{} is not published: {}", m_declaration->path, why);
        return "not published: " + why;
    }
    std::uint64_t bytes = 0;
    for (const auto& [digest, image] : recording.images) {
        bytes += image.size();
        const bool is_code = std::ranges::find(recording.entry.graph.images, digest, &cachefmt::ImageRef::digest) !=
                             recording.entry.graph.images.end();
        const auto kind = is_code ? store::ArtifactKind::images : store::ArtifactKind::constants;
        if (auto published = m_sinks.store->publish_image(image, kind); !published) {
            m_faults.note("publish", published.error());
            return "not published: " + published.error().message;
        }
    }
    const auto published = [&]() -> Result<bool> {
        if (m_sinks.pair) return m_sinks.pair->publish(recording.entry);
        if (auto done = m_sinks.store->publish(recording.entry); !done) return std::unexpected(done.error());
        return true;
    }();
    if (!published) {
        m_faults.note("publish", published.error());
        return "not published: " + published.error().message;
    }
    if (!*published) return {}; // the entry is stored when the other half is recorded
    m_sinks.touched.note(recording.entry.header.key);
    m_sinks.programs->keep_ready();
    const auto& info = recording.entry.header.info;
    log().info("saved {} {} ({}, {} of {}, recorded in {}, {} of device memory, verified {}, {}, {}, format {})",
               m_declaration->path, short_hex(recording.entry.header.key.guards_digest),
               plural(info.node_count, "node"), plural(info.image_count, "image"), size_text(bytes),
               time_text(info.record_ms), size_text(recording.device_bytes), info.verification, info.created,
               info.created_by, cachefmt::k_format_version);
    store::FunctionUsage usage;
    usage.recordings = 1;
    usage.cold = times_of(phases);
    usage.events = store::one_event(store::EventKind::recorded, "published", bytes);
    m_sinks.store->add_usage(m_declaration->key, usage);
    return {};
}

} // namespace warmgraph
