#include "warmgraph/call/lookup.hpp"

#include <algorithm>

#include "warmgraph/backends/event_wait.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/call/phase_times.hpp"
#include "warmgraph/capture/bindings.hpp"
#include "warmgraph/replay/exposure.hpp"
#include "warmgraph/replay/stored_graph.hpp"

namespace warmgraph {

namespace {

Result<void> check_regions(const Interface& interface, const cachefmt::Graph& graph)
{
    std::vector<replay::DeclaredRegion> declared;
    for (const RegionDecl& region : interface.regions) declared.push_back({region.name, region.kind});
    return replay::check_regions(declared, graph);
}

/// Whether a call of this interface can match the recorded guards with inputs and outputs in device memory. Other
/// entries are not preloaded; they are loaded at their first call.
bool fits(const Interface& interface, const cachefmt::Guards& recorded, const std::string& device)
{
    const auto& tensors = recorded.tensors;
    if (!std::ranges::equal(tensors, interface.region_names, {}, &cachefmt::TensorSpec::name)) return false;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const cachefmt::TensorSpec& tensor = tensors[i];
        const bool is_here = interface.regions[i].kind == cachefmt::RegionKind::state ||
                             interface.regions[i].kind == cachefmt::RegionKind::weights;
        if (tensor.device != device && !(is_here && tensor.device == k_host_memory)) return false;
        if (tensor.sizes.size() > cachefmt::k_max_rank || tensor.strides.size() != tensor.sizes.size()) return false;
    }
    return true;
}

bool knows_all(const NamedHandles& declared, const std::vector<std::string>& names)
{
    return std::ranges::all_of(names,
                               [&](const std::string& name) { return find_name(declared, name) != declared.end(); });
}

} // namespace

Lookup::Lookup(std::shared_ptr<const Declaration> declaration, Sources sources)
    : m_declaration(std::move(declaration)), m_sources(std::move(sources)), m_faults(m_declaration, m_sources.counters)
{
}

Result<bool> is_idle(backends::Stream& stream, std::chrono::nanoseconds limit)
{
    auto event = stream.record_event();
    if (!event) {
        auto done = stream.synchronize(); // the stream has no events, so waits for all of its work
        return done ? Result<bool>{true} : std::unexpected(done.error());
    }
    return backends::wait_for(**event, limit);
}

// --- decisions

Situation Lookup::situation(const cachefmt::Guards& now, bool has_pending) const
{
    return {m_declaration->label,
            now,
            m_sources.relaxation,
            m_declaration->policy,
            m_declaration->callable != nullptr,
            has_pending,
            m_sources.store ? "" : m_sources.why_off,
            m_sources.uses_graphs};
}

void Lookup::note_untrusted(const std::vector<store::Variant>& variants) const
{
    store::FunctionUsage usage;
    for (const auto& variant : variants) {
        if (variant.header || variant.header.error().code != ErrorCode::untrusted) continue;
        if (!m_sources.counters.untrusted({m_declaration->key, variant.guards_digest})) continue;
        log().warn("{} {} is not used: {}", m_declaration->path, short_hex(variant.guards_digest),
                   variant.header.error().message);
        usage.events.add(store::EventKind::untrusted, to_string(ErrorCode::untrusted), {1, variant.size});
    }
    if (!usage.events.all().empty()) m_sources.store->add_usage_soon(m_declaration->key, usage);
}

store::Header Lookup::usable(store::Header header) const
{
    if (!header || !m_sources.part) return header;
    const auto beside = m_sources.store->variants(m_declaration->key);
    return beside && PairEntries::is_usable(*header, *m_sources.part, *beside) ? header : nullptr;
}

std::vector<store::Variant> Lookup::usable(std::vector<store::Variant> variants) const
{
    if (!m_sources.part) return variants;
    std::vector<store::Variant> result;
    for (const store::Variant& variant : variants)
        if (!variant.header || PairEntries::is_usable(*variant.header, *m_sources.part, variants))
            result.push_back(variant);
    return result;
}

Headers Lookup::headers(const Digest& digest) const
{
    return {[this, digest] {
                const cachefmt::EntryKey key{m_declaration->key, digest};
                auto loaded =
                    m_sources.preload.graphs.loaded_header(m_declaration->number, key, *m_declaration->backend());
                return loaded ? loaded : usable(m_sources.store->header(key).value_or(nullptr));
            },
            [this]() -> Result<std::vector<store::Variant>> {
                auto variants = m_sources.store->variants(m_declaration->key);
                if (!variants) m_faults.note("look-up", variants.error());
                if (!variants) return variants;
                note_untrusted(*variants);
                return usable(std::move(*variants));
            }};
}

Plan Lookup::decide(const FirstCall& first_call, bool has_pending) const
{
    return warmgraph::decide(situation(first_call.now, has_pending), headers(first_call.digest));
}

Plan Lookup::on_miss(const FirstCall& first_call, bool has_pending, std::string reason) const
{
    return warmgraph::on_miss(situation(first_call.now, has_pending), std::move(reason));
}

// --- restore of entries

std::optional<PreloadedGraph> Lookup::preloaded(const cachefmt::EntryKey& key, Phases& phases) const
{
    const auto& device = *m_declaration->backend();
    auto& graphs = m_sources.preload.graphs;
    if (!graphs.has(m_declaration->number, key, device)) {
        graphs.forget(key.function, device); // the call needs another entry
        return std::nullopt;
    }
    const auto timer = phases.measure("preloaded");
    return graphs.take(m_declaration->number, key, device);
}

Result<void> Lookup::check_stored(const cachefmt::EntryHeader& header, const cachefmt::Graph& graph) const
{
    if (auto agrees = check_regions(m_declaration->interface, graph); !agrees) {
        m_sources.store->set_aside(header, agrees.error());
        return agrees;
    }
    if (auto fits = replay::check_constants_size(graph, m_declaration->spec.max_constant_bytes); !fits) return fits;
    // The Spec must declare the event. If the graph used an event of its own instead, work outside the graph would not
    // see it.
    for (const std::string& event : graph.events)
        if (find_name(m_declaration->handles.events, event) == m_declaration->handles.events.end())
            return fail(ErrorCode::not_recordable,
                        "the graph has the event '{}', which the function does not declare: declare it (Spec::events)",
                        event);
    auto known =
        replay::check_exposed(*m_declaration->backend(), graph, m_sources.images, m_declaration->spec.frozen_variables);
    if (!known && known.error().code == ErrorCode::not_recordable) withdraw(header.key);
    return known;
}

auto Lookup::restore(const cachefmt::EntryKey& key, store::ReadPurpose reading, const Frame& frame,
                     Phases& phases) const -> Result<std::optional<RestoredEntry>>
try {
    // Drivers crash on some code. A mark that remains shows later which code crashed.
    std::unique_ptr<store::LoadMark> mark;
    std::optional<Error> condemned;
    const auto begin = [&]() -> Result<void> {
        auto begun = m_sources.store->begin_load(key, m_declaration->device->load_target());
        if (!begun) return std::unexpected(condemned.emplace(begun.error()));
        mark = std::move(*begun);
        return {};
    };
    const auto fail_condemned = [&](const cachefmt::EntryHeader& header) -> std::unexpected<Error> {
        if (!m_declaration->publishes) return std::unexpected(*condemned);
        m_sources.store->set_aside(header, *condemned); // the store keeps the full reason
        return fail(condemned->code, "processes died while they loaded its code, so it was moved to quarantine");
    };
    auto ready = reading == store::ReadPurpose::use ? preloaded(key, phases) : std::nullopt;
    const auto given = [&](PreloadedGraph& ahead) -> Result<std::optional<RestoredEntry>> {
        if (auto usable = check_stored(ahead.header, ahead.executable->graph()); !usable)
            return std::unexpected(usable.error());
        if (!begin()) return fail_condemned(ahead.header);
        return RestoredEntry{std::move(ahead.header), std::move(ahead.executable), std::move(mark),
                             std::move(ahead.placeholder), ahead.is_loaded};
    };
    // The file is unchanged since it was verified.
    if (ready && (ready->is_loaded || m_sources.store->is_still(key, ready->stamp))) {
        m_sources.store->note_use(key);
        return given(*ready);
    }
    auto entry = [&] {
        const auto timer = phases.measure("load");
        return m_sources.store->entry(key, reading);
    }();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return std::nullopt;
    cachefmt::Graph& graph = (**entry).graph;
    if (ready && ready->header == (**entry).header && ready->executable->graph() == graph) return given(*ready);
    if (auto usable = check_stored((**entry).header, graph); !usable) return std::unexpected(usable.error());
    replay::Loading loading;
    loading.begin = begin;
    const auto bindings = bindings_of(graph, frame.memory, frame.scalars, m_declaration->handles);
    auto executable =
        replay::Executable::restore(m_declaration->backend(), std::move(graph), m_sources.modules, m_sources.images,
                                    bindings, phases, replay::RegisteredModules::bind, m_declaration->number, &loading);
    if (condemned) return fail_condemned((**entry).header);
    // The entry decodes, but no process could use it. The next recording replaces it.
    if (!executable && loading.blame == replay::Blame::entry && m_declaration->publishes)
        m_sources.store->set_aside((**entry).header, executable.error());
    if (!executable) return std::unexpected(executable.error());
    return RestoredEntry{std::move((**entry).header), std::move(*executable), std::move(mark)};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "out of host memory while it was loaded and restored");
}

Result<void> Lookup::check_constants(const replay::Executable& executable, backends::Stream& stream) const
{
    const auto has_memory = [](const NamedConstant& constant) { return !constant.memory.address.is_null(); };
    if (std::ranges::none_of(m_declaration->interface.constants, has_memory)) return {};
    const auto idle = is_idle(stream); // work in the stream may fill the constants
    if (!idle) return std::unexpected(idle.error());
    if (!*idle)
        return fail(
            ErrorCode::not_recordable,
            "work that was enqueued before the call has not finished, and may fill its constants: call it later");
    const auto& regions = executable.graph().regions;
    for (const NamedConstant& constant : m_declaration->interface.constants) {
        if (constant.memory.address.is_null()) continue;
        const auto stored = std::ranges::find_if(regions, [&](const cachefmt::Region& region) {
            return region.kind == cachefmt::RegionKind::constant && region.name == constant.name;
        });
        if (stored == regions.end())
            return fail(ErrorCode::not_recordable,
                        "the entry has no constant '{}': clear the entry, or give another version", constant.name);
        const auto index = static_cast<std::size_t>(stored - regions.begin());
        std::optional<std::uint64_t> differs = 0;
        if (stored->size == constant.memory.size) {
            auto compared = m_declaration->backend()->bulk().first_difference(executable.constant(index).address,
                                                                              constant.memory.address, stored->size);
            if (!compared) return std::unexpected(compared.error());
            differs = *compared;
        }
        if (differs)
            return fail(ErrorCode::not_recordable,
                        "the constant '{}' has other contents than when the function was recorded (at byte {}): give "
                        "what it depends on as a guard (Spec::config or Spec::version)",
                        constant.name, *differs);
    }
    return {};
}

/// Removes the entry for all processes, because a process that keeps no device code could not notice that the entry is
/// wrong (Device::prepare_recording).
void Lookup::withdraw(const cachefmt::EntryKey& key) const
{
    if (!m_declaration->publishes) return;
    if (auto removed = m_sources.store->remove(key); !removed) m_faults.note("remove", removed.error());
}

std::expected<LoadedVariant, EntryRefusal> Lookup::load(const cachefmt::EntryKey& key, const Frame& frame,
                                                        backends::Stream& stream, Phases& phases) const
{
    const auto started = system_clock().steady();
    auto restored = restore(key, store::ReadPurpose::use, frame, phases);
    if (restored && *restored)
        if (auto same = check_constants(*(**restored).executable, stream); !same)
            restored = std::unexpected(same.error());
    if (!restored) {
        m_faults.note("restore", restored.error());
        const auto entry = m_sources.store->entry(key, store::ReadPurpose::preload);
        const bool must_not_record =
            restored.error().code == ErrorCode::not_recordable ||
            (entry && *entry && !knows_all(m_declaration->handles.semaphores, (**entry).graph.semaphores));
        return std::unexpected(EntryRefusal{restored.error().message, restored.error().code, must_not_record});
    }
    if (!*restored) return std::unexpected(EntryRefusal{"the entry was removed while it was looked up"});
    const double load_ms = Milliseconds{system_clock().steady() - started}.count();
    auto variant = variant_of((**restored).header, std::move((**restored).executable));
    variant.mark = std::move((**restored).mark);
    variant.is_preloaded = (**restored).is_preloaded;
    const cachefmt::EntryInfo& info = (**restored).header.info;
    variant.unused =
        PendingHit{std::move((**restored).placeholder), load_ms, info.answer_ms, times_of(phases), info.compiled};
    variant.made = fmt::format("{}, {}, format {}", printable(info.created, 40), printable(info.created_by, 40),
                               cachefmt::k_format_version);
    return variant;
}

bool Lookup::is_still_valid(const LoadedVariant& variant) const
{
    if (!variant.executable) return true;
    const auto known = replay::check_exposed(*m_declaration->backend(), variant.executable->graph(), m_sources.images,
                                             m_declaration->spec.frozen_variables);
    if (known) return true;
    log().warn("{} {} is not replayed any more: {}", m_declaration->path, short_hex(variant.guards_digest),
               known.error().message);
    if (known.error().code == ErrorCode::not_recordable) withdraw({m_declaration->key, variant.guards_digest});
    return false;
}

Result<std::unique_ptr<store::LoadMark>> Lookup::begin_load(const Digest& digest) const
{
    return m_sources.store->begin_load({m_declaration->key, digest}, m_declaration->device->load_target());
}

void Lookup::note_use(const Digest& digest) const { m_sources.store->note_use({m_declaration->key, digest}); }

void Lookup::note_addresses(const Frame& frame) const
{
    // Only flat addresses are noted. Other addresses are objects, which may be destroyed before they are used.
    if (m_declaration->backend()->limits().flat_addresses)
        m_sources.preload.addresses.note(*m_declaration->backend(), m_declaration->interface.region_names,
                                         frame.memory);
}

void Lookup::remove(const Digest& digest) const
{
    if (auto removed = m_sources.store->remove({m_declaration->key, digest}); !removed)
        m_faults.note("remove", removed.error());
}

LoadedVariant Lookup::variant_of(const cachefmt::EntryHeader& header,
                                 std::unique_ptr<replay::Executable> executable) const
{
    const auto& [facts, tensors, values] = header.guards;
    LoadedVariant variant{guards::CallGuard{tensors, values, m_declaration->backend()->ordinal()},
                          std::move(executable), header.key.guards_digest};
    variant.recording = header.recording;
    return variant;
}

// --- preload, before the first call

bool Lookup::may_have_candidates() const noexcept
{
    const Policy policy = m_declaration->policy;
    return m_sources.store && policy != Policy::off && !(policy == Policy::refresh && m_declaration->callable);
}

std::vector<PreloadCandidate> Lookup::candidates(const std::vector<cachefmt::Fact>& facts) const
{
    std::vector<PreloadCandidate> result;
    auto variants = m_sources.store->variants(m_declaration->key);
    if (!variants) {
        m_faults.note("look-up", variants.error());
        return result;
    }
    note_untrusted(*variants);
    for (const auto& variant : usable(std::move(*variants)))
        if (auto found = candidate(variant, facts)) result.push_back(std::move(*found));
    return result;
}

std::optional<PreloadCandidate> Lookup::candidate(const store::Variant& variant,
                                                  const std::vector<cachefmt::Fact>& facts) const
{
    PreloadCandidate result;
    result.guards_digest = variant.guards_digest;
    result.last_used = variant.last_used;
    if (!variant.header) {
        result.damage = variant.header.error();
        return result;
    }
    if (variant.header->kind != cachefmt::EntryKind::graph) return std::nullopt;
    const cachefmt::Guards& recorded = variant.header->guards;
    // Checks only the facts now, because tensors and values belong to each call.
    if (!guards::evaluate_facts(recorded.facts, facts, m_sources.relaxation).empty()) return std::nullopt;
    if (!fits(m_declaration->interface, recorded, m_declaration->backend()->id())) return std::nullopt;
    for (std::size_t i = 0; i < m_declaration->interface.regions.size(); ++i) {
        const auto& tensor = recorded.tensors[i];
        if (m_declaration->interface.regions[i].kind == cachefmt::RegionKind::input)
            result.inputs.push_back({tensor.name, tensor.dtype, tensor.sizes, tensor.strides});
    }
    return result;
}

} // namespace warmgraph
