// Function::Impl: stored entries are restored.
#include <algorithm>

#include "function_impl.hpp"
#include "throwing.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/capture/bindings.hpp"
#include "warmgraph/replay/exposure.hpp"

namespace warmgraph {

namespace {

/// Calls bind by position: what is declared comes first, in its order, and all else is the entry's own. Files are not
/// trusted.
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

/// What the function may keep is what it may be given.
Result<void> check_constants_size(const cachefmt::Graph& graph, std::uint64_t most)
{
    std::uint64_t bytes = 0; // the decoder has bounded their number and sizes
    for (const auto& region : graph.regions)
        if (region.kind == cachefmt::RegionKind::constant) bytes += region.size;
    if (bytes <= most) return {};
    return fail(ErrorCode::unsupported,
                "the entry's constants have {} bytes, at most {} are loaded: raise Spec::max_constant_bytes", bytes,
                most);
}

bool knows_all(const NamedHandles& declared, const std::vector<std::string>& names)
{
    return std::ranges::all_of(names,
                               [&](const std::string& name) { return find_name(declared, name) != declared.end(); });
}

} // namespace

std::optional<Prepared> Function::Impl::prepared(const cachefmt::EntryKey& key, Phases& phases) const
{
    const auto& device = *m_device->device;
    if (!m_cache->prepared.has(key, device)) {
        m_cache->prepared.forget(key.function, device); // the call needs another
        return std::nullopt;
    }
    const auto timer = phases.measure("prepared");
    return m_cache->prepared.take(key, device);
}

Result<void> Function::Impl::check_stored(const cachefmt::EntryKey& key, const cachefmt::EntryHeader& header,
                                          const cachefmt::Graph& graph) const
{
    if (auto agrees = check_regions(m_interface, graph); !agrees) {
        m_shelf->set_aside(header, agrees.error());
        return agrees;
    }
    if (auto fits = check_constants_size(graph, m_spec.max_constant_bytes); !fits) return fits;
    // One of the graph's own in its place would be seen by nobody outside.
    for (const std::string& event : graph.events)
        if (find_name(m_subject.handles.events, event) == m_subject.handles.events.end())
            return fail(ErrorCode::not_recordable,
                        "the graph has the event '{}', which the function does not declare here: declare it "
                        "(Spec::events)",
                        event);
    auto known = replay::check_exposed(*m_device->device, graph, m_cache->image_source(), m_spec.frozen_variables);
    if (!known && known.error().code == ErrorCode::not_recordable) withdraw(key);
    return known;
}

auto Function::Impl::restore(const cachefmt::EntryKey& key, store::Reading reading,
                             const std::vector<MemoryRef>& regions, const std::vector<std::uint64_t>& scalars,
                             Phases& phases, replay::Instantiation instantiation) const
    -> Result<std::optional<Restored>>
try {
    // Drivers die of some code. What that was is known afterwards by the mark that stayed.
    std::unique_ptr<store::LoadMark> mark;
    std::optional<Error> condemned;
    const auto begin = [&]() -> Result<void> {
        auto begun = m_shelf->begin_load(key, m_device->load_target());
        if (!begun) return std::unexpected(condemned.emplace(begun.error()));
        mark = std::move(*begun);
        return {};
    };
    const auto fail_condemned = [&](const cachefmt::EntryHeader& header) -> std::unexpected<Error> {
        if (!publishes()) return std::unexpected(*condemned);
        m_shelf->set_aside(header, *condemned); // it tells the whole of it
        return fail(condemned->code, "processes died over its code, and it is set aside");
    };
    auto ready = reading == store::Reading::use ? prepared(key, phases) : std::nullopt;
    const auto given = [&](Prepared& ahead) -> Result<std::optional<Restored>> {
        if (auto usable = check_stored(key, ahead.header, ahead.executable->graph()); !usable)
            return std::unexpected(usable.error());
        if (!begin()) return fail_condemned(ahead.header);
        return Restored{std::move(ahead.header), std::move(ahead.executable), std::move(mark),
                        std::move(ahead.placeholder)};
    };
    if (ready && m_cache->store->is_still(key, ready->stamp)) { // what was read and verified ahead
        m_shelf->note_use(key);
        return given(*ready);
    }
    auto entry = [&] {
        const auto timer = phases.measure("load");
        return m_shelf->entry(key, reading);
    }();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return std::nullopt;
    cachefmt::Graph& graph = (**entry).graph;
    if (ready && ready->header == (**entry).header && ready->executable->graph() == graph) return given(*ready);
    if (auto usable = check_stored(key, (**entry).header, graph); !usable) return std::unexpected(usable.error());
    const auto image_of = m_cache->image_source();
    replay::Loading loading;
    loading.instantiation = instantiation;
    loading.begin = begin;
    const auto bindings = bindings_of(graph, regions, scalars, m_subject.handles);
    auto executable =
        replay::Executable::restore(m_device->device, std::move(graph), m_cache->modules, image_of, bindings, phases,
                                    replay::RegisteredModules::bind, m_subject.function, &loading);
    if (condemned) return fail_condemned((**entry).header);
    // It decodes, and no process could use it. The next recording takes its place.
    if (!executable && loading.blame == replay::Blame::entry && publishes())
        m_shelf->set_aside((**entry).header, executable.error());
    if (!executable) return std::unexpected(executable.error());
    return Restored{std::move((**entry).header), std::move(*executable), std::move(mark)};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no host memory to load and restore it");
}

/// What this process has under a constant's name must be what the entry has.
Result<void> Function::Impl::check_constants(const replay::Executable& executable, backends::Stream& stream) const
{
    const auto has_memory = [](const NamedConstant& constant) { return !constant.memory.address.is_null(); };
    if (std::ranges::none_of(m_interface.constants, has_memory)) return {};
    const auto idle = is_idle(stream); // what fills them may be in the stream
    if (!idle) return std::unexpected(idle.error());
    if (!*idle)
        return fail(ErrorCode::not_recordable,
                    "work before the call is not done, which may fill its constants: call it later");
    const auto& regions = executable.graph().regions;
    for (const NamedConstant& constant : m_interface.constants) {
        if (constant.memory.address.is_null()) continue;
        const auto stored = std::ranges::find_if(regions, [&](const cachefmt::Region& region) {
            return region.kind == cachefmt::RegionKind::constant && region.name == constant.name;
        });
        if (stored == regions.end())
            return fail(ErrorCode::not_recordable, "the entry has no constant '{}': clear it, or name another version",
                        constant.name);
        const auto index = static_cast<std::size_t>(stored - regions.begin());
        std::optional<std::uint64_t> differs = 0;
        if (stored->size == constant.memory.size) {
            auto compared = m_device->device->bulk().first_difference(executable.constant(index).address,
                                                                      constant.memory.address, stored->size);
            if (!compared) return std::unexpected(compared.error());
            differs = *compared;
        }
        if (differs)
            return fail(
                ErrorCode::not_recordable,
                "the constant '{}' holds something else than when the function was recorded (byte {}): give what it "
                "depends on as a guard (Spec::config or Spec::version)",
                constant.name, *differs);
    }
    return {};
}

namespace {

/// The device outlives the event that it made.
struct Behind {
    std::shared_ptr<backends::Device> device;
    std::shared_ptr<backends::Event> event;
    Result<bool> operator()() const { return event->is_done(); }
};

} // namespace

/// In a capture of the caller's nothing runs yet, and nobody can ask when it does.
void Function::Impl::note_launch(LoadedVariant& variant, backends::Stream& stream) const noexcept
try {
    if (m_cache->store) m_cache->store->settle_loads();
    if (!variant.mark) return;
    if (stream.is_capturing()) return variant.mark.reset();
    auto event = stream.record_event();
    if (event) {
        variant.launched = Behind{m_device->device, std::move(*event)};
        return end_load(variant);
    }
    if (event.error().code == ErrorCode::unsupported) variant.mark->succeed(); // as far as anybody will know
    variant.mark.reset();
} catch (const std::bad_alloc&) {
    variant.mark.reset(); // and nothing is learnt
}

/// Where it was launched. What is not instantiated yet is still to come.
void Function::Impl::end_load(LoadedVariant& variant) const noexcept
{
    if (!variant.mark || !variant.launched || !variant.executable->is_complete()) return;
    m_cache->store->end_load_behind(std::exchange(variant.mark, nullptr), std::exchange(variant.launched, nullptr));
}

/// For all processes: one that keeps no device code could not tell (Device::prepare_recording).
void Function::Impl::withdraw(const cachefmt::EntryKey& key) const
{
    if (!publishes()) return;
    if (auto removed = m_shelf->remove(key); !removed) cache_fault("remove", removed.error());
}

/// Loads an entry whose guards hold; nothing is launched.
auto Function::Impl::load(const cachefmt::EntryKey& key, backends::Stream& stream, Phases& phases)
    -> std::expected<LoadedVariant, Unusable>
{
    const auto started = system_clock().steady();
    auto restored = restore(key, store::Reading::use, m_frame.memory, m_frame.scalars, phases);
    if (restored && *restored)
        if (auto same = check_constants(*(**restored).executable, stream); !same)
            restored = std::unexpected(same.error());
    if (!restored) {
        cache_fault("restore", restored.error());
        const auto entry = m_shelf->entry(key, store::Reading::ahead);
        const bool must_not_record =
            restored.error().code == ErrorCode::not_recordable ||
            (entry && *entry && !knows_all(m_subject.handles.semaphores, (**entry).graph.semaphores));
        return std::unexpected(Unusable{restored.error().message, restored.error().code, must_not_record});
    }
    if (!*restored) return std::unexpected(Unusable{"the entry was removed while it was looked up"});
    const double load_ms = Milliseconds{system_clock().steady() - started}.count();
    auto variant = variant_of((**restored).header.guards, key.guards_digest, std::move((**restored).executable));
    variant.mark = std::move((**restored).mark);
    const cachefmt::EntryInfo& info = (**restored).header.info;
    variant.unused =
        Unused{std::move((**restored).placeholder), load_ms, info.answer_ms, times_of(phases), info.compiled};
    variant.made = fmt::format("{}, {}, format {}", printable(info.created, 40), printable(info.created_by, 40),
                               cachefmt::k_format_version);
    return variant;
}

/// The program asked for the address of some variable since: what has it is not replayed any more. Nor is
/// what has code that cannot be looked at any more.
void Function::Impl::forget_exposed()
{
    std::erase_if(m_variants, [&](const LoadedVariant& variant) {
        if (!variant.executable) return false;
        const auto& graph = variant.executable->graph();
        const auto known =
            replay::check_exposed(*m_device->device, graph, m_cache->image_source(), m_spec.frozen_variables);
        if (known) return false;
        log().warn("{} {} is not replayed any more: {}", label(), short_hex(variant.guards_digest),
                   known.error().message);
        if (known.error().code == ErrorCode::not_recordable) withdraw({m_key, variant.guards_digest});
        return true;
    });
}

/// At the first use: what is held to the function and found wrong was no hit.
void Function::Impl::count_hit(LoadedVariant& variant)
{
    auto unused = std::exchange(variant.unused, std::nullopt);
    if (!unused) return;
    m_shelf->note_touched({m_key, variant.guards_digest});
    if (m_half && !m_half->counts_hit()) return;
    // What of it was counted as a program's is no saving of the graph's.
    const double answer_ms =
        unused->answer_ms - std::min(m_cache->programs->count_within(unused->compiled), unused->answer_ms);
    m_cache->counters.hit(unused->load_ms, answer_ms);
    store::FunctionUsage usage;
    usage.hits = 1;
    std::uint64_t bytes = 0;
    for (const auto& image : variant.executable->graph().images) bytes += image.size;
    usage.events = store::one_event(store::EventKind::hit, "restored", bytes);
    usage.saved_ms = answer_ms - unused->load_ms;
    usage.warm = std::move(unused->times);
    m_cache->store->add_usage_soon(m_key, usage);
}

} // namespace warmgraph
