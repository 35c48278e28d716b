// Function::Impl, the way to a hit: exact key first, then every variant on disk, judged by header alone.
#include <algorithm>

#include "function_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/capture/bindings.hpp"
#include "warmgraph/capture/verify_on_load.hpp"

namespace warmgraph {

namespace {

/// Calls bind by position: what is declared comes first, in its order, and all else is the entry's own. Files are not trusted.
Result<void> check_regions(const Interface& interface, const cachefmt::Graph& graph)
{
    const std::size_t declared = interface.regions.size();
    if (graph.regions.size() < declared)
        return fail(ErrorCode::corrupt, "the entry has {} regions, the function declares {}", graph.regions.size(),
                    declared);
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const cachefmt::Region& region = graph.regions[i];
        const bool is_own = region.kind == cachefmt::RegionKind::arena || region.kind == cachefmt::RegionKind::constant;
        if (i < declared ? region.kind != interface.regions[i].kind || region.name != interface.region_names[i]
                         : !is_own)
            return fail(ErrorCode::corrupt, "region {} of the entry, '{}', is none that the function declares there", i,
                        region.name);
    }
    return {};
}

bool knows_all(const NamedHandles& declared, const std::vector<std::string>& names)
{
    return std::ranges::all_of(names, [&](const std::string& name) {
        return std::ranges::find(declared, name, [](const auto& one) { return one.first; }) != declared.end();
    });
}

} // namespace

bool Function::Impl::try_hit(Journey& journey)
{
    const auto timer_start = system_clock().steady();
    const auto looked_up = [&] { journey.phases.add("look up", system_clock().steady() - timer_start); };

    auto exact = m_cache->store->header({m_key, journey.digest});
    if (exact && *exact && guards::evaluate((**exact).guards, journey.now, m_cache->relaxation).empty()) {
        looked_up();
        return try_entry(journey, **exact);
    }
    // Not under these very guards: another variant may still be valid (a newer driver that is accepted, a stronger
    // alignment), and if none is, the nearest one explains the miss.
    auto variants = m_cache->store->variants(m_key);
    looked_up();
    if (!variants) {
        cache_fault("look-up", variants.error());
        journey.miss = variants.error().message;
        return false;
    }
    for (const auto& variant : *variants) {
        if (!variant.header) continue;
        if (!guards::evaluate(variant.header->guards, journey.now, m_cache->relaxation).empty()) continue;
        if (try_entry(journey, *variant.header)) return true;
        if (journey.tombstoned) return false;
    }
    if (journey.miss.empty()) explain_miss(journey, *variants);
    return false;
}

bool Function::Impl::try_entry(Journey& journey, const cachefmt::EntryHeader& header)
{
    if (header.kind == cachefmt::EntryKind::tombstone) {
        journey.tombstoned = true;
        journey.miss = fmt::format(
            "it was recorded twice under the same guards with different graphs ({}): {}; give what changed as a guard "
            "(Spec::config, Spec::code or Spec::version), then `warmgraph clear --func {}/{}`",
            header.info.reason, fmt::join(header.info.difference, "; "), m_cache->options.model, m_name);
        return false;
    }
    return load(journey, header.key);
}

auto Function::Impl::restore(const cachefmt::EntryKey& key, store::Reading reading,
                             const std::vector<MemoryRef>& regions, const std::vector<std::uint64_t>& scalars,
                             Phases& phases) const -> Result<std::optional<Restored>>
try {
    auto& store = *m_cache->store;
    auto entry = [&] {
        const auto timer = phases.measure("load");
        return store.entry(key, reading);
    }();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return std::nullopt;
    const auto image_of = [&store](const cachefmt::ImageRef& image) -> Result<Bytes> {
        auto bytes = store.image(image.digest);
        if (!bytes) return std::unexpected(bytes.error());
        if (!*bytes)
            return fail(ErrorCode::not_found, "image {} ({}) is missing or damaged", short_hex(image.digest),
                        image.label);
        return std::move(**bytes);
    };
    cachefmt::Graph& graph = (**entry).graph;
    if (auto agrees = check_regions(m_interface, graph); !agrees) {
        if (auto removed = store.remove(key); !removed) cache_fault("remove", removed.error());
        return std::unexpected(agrees.error());
    }
    const auto bindings = bindings_of(graph, regions, scalars, m_subject.handles);
    auto executable = replay::Executable::restore(m_device->device, std::move(graph), m_cache->modules, image_of,
                                                  bindings, phases, replay::OwnModules::bind, m_subject.function);
    if (!executable) return std::unexpected(executable.error());
    return Restored{std::move((**entry).header), std::move(*executable)};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory to load and restore it");
}

bool Function::Impl::load(Journey& journey, const cachefmt::EntryKey& key)
{
    const auto started = system_clock().steady();
    const auto unusable = [&](const Error& error) {
        journey.load_failure = error.code;
        journey.miss = error.message;
        return false;
    };
    auto restored = restore(key, store::Reading::use, m_frame.memory, m_frame.scalars, journey.phases);
    if (!restored) {
        cache_fault("restore", restored.error());
        const auto entry = m_cache->store->entry(key, store::Reading::ahead);
        journey.must_not_record |=
            restored.error().code == ErrorCode::not_recordable ||
            (entry && *entry && !knows_all(m_subject.handles.semaphores, (**entry).graph.semaphores));
        return unusable(restored.error());
    }
    if (!*restored) {
        journey.miss = "the entry was removed while it was looked up";
        return false;
    }
    if (auto verified = verify(key.guards, *(**restored).executable, journey.stream, journey.phases); !verified)
        return unusable(verified.error());
    keep((**restored).header.guards, key.guards, std::move((**restored).executable));
    count_hit(Milliseconds{system_clock().steady() - started}.count(), (**restored).header.info.record_ms);
    return true;
}

Result<void> Function::Impl::compare_with_function(replay::Executable& executable, Phases& phases)
try {
    return verify_restored(m_subject, m_frame, executable, phases);
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory to compare it with the function");
}

Result<void> Function::Impl::verify(const Digest& digest, replay::Executable& executable,
                                    const std::shared_ptr<backends::Stream>& stream, Phases& phases)
{
    if (!m_cache->options.verify_on_load || !m_callable) return {};
    const auto timer = phases.measure("verify");
    order_after_last(stream);              // what the callable holds, the last launch may still be using
    auto verified = stream->synchronize(); // the caller's memory is about to be read
    if (verified) verified = compare_with_function(executable, phases);
    if (verified) return {};
    cache_fault("verify on load", verified.error());
    // Memory that it used in place is damaged: the function itself would compute with it.
    if (verified.error().code == ErrorCode::partly_launched) raise(within(label(), verified.error()).error());
    // What else went wrong on the way (memory, driver) says nothing about the entry.
    if (verified.error().code == ErrorCode::verification_failed)
        if (auto removed = m_cache->store->remove({m_key, digest}); !removed) cache_fault("remove", removed.error());
    return verified;
}

void Function::Impl::count_hit(double load_ms, double record_ms)
{
    m_cache->counters.hit(load_ms, record_ms);
    store::FunctionUsage usage;
    usage.hits = 1;
    usage.saved_ms = record_ms - load_ms;
    m_cache->store->add_usage_soon(m_key, usage);
}

void Function::Impl::explain_miss(Journey& journey, const std::vector<store::Variant>& variants)
{
    std::vector<guards::Mismatch> nearest;
    std::size_t readable = 0;
    for (const auto& variant : variants) {
        if (!variant.header) {
            journey.miss =
                fmt::format("entry {} cannot be used: {}", short_hex(variant.guards), variant.header.error().message);
            continue;
        }
        auto mismatches = guards::evaluate(variant.header->guards, journey.now, m_cache->relaxation);
        if (readable++ == 0 || mismatches.size() < nearest.size()) nearest = std::move(mismatches);
    }
    if (readable > 0)
        journey.miss = fmt::format("{} variant{} on disk, the nearest differs: {}", readable, readable == 1 ? "" : "s",
                                   guards::summarize(nearest));
    else if (journey.miss.empty())
        journey.miss = "no entry";
}

} // namespace warmgraph
