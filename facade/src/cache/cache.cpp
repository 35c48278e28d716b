#include <algorithm>

#include "cache/cache_impl.hpp"
#include "cache/making.hpp"
#include "warmgraph/autotune/tuner_impl.hpp"
#include "warmgraph/backends/built.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/cachefmt/readable.hpp"
#include "warmgraph/call/argument_reader.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

Statistics Cache::Impl::statistics() const
{
    Statistics now = counters.snapshot();
    now.images_loaded = modules.count();
    const ProgramCounts counts = programs->counts();
    now.programs_compiled = counts.compiled;
    now.programs_loaded = counts.loaded;
    now.programs_refused = counts.refused;
    now.compile_ms = counts.compile_ms;
    now.compile_saved_ms = counts.saved_ms;
    now.program_miss_reasons = counts.miss_reasons;
    TuningStatistics tuning = tunings.total();
    now.tuned_hits = tuning.hits;
    now.tuned_misses = tuning.misses;
    now.kernels_tuned = tuning.tuned;
    now.tuning_ms = tuning.tuning_ms;
    now.tuning_saved_ms = tuning.saved_ms;
    now.tuned_miss_reasons = std::move(tuning.miss_reasons);
    if (profiles) {
        now.profile_hits = profiles->hits();
        now.profile_misses = profiles->misses();
    }
    now.cache_faults += counts.faults + tuning.faults;
    return now;
}

std::string Cache::Impl::summary() const
{
    const Statistics now = statistics();
    std::string text =
        fmt::format("warmgraph: {}, {}, {}, {} to load, {} saved", plural(now.hits, "hit"), plural(now.misses, "miss"),
                    plural(modules.count(), "image"), time_text(now.load_ms), time_text(now.saved_ms));
    if (now.programs_loaded != 0)
        text += fmt::format(", {} loaded ({} saved)", plural(now.programs_loaded, "program"),
                            time_text(now.compile_saved_ms));
    if (now.tuned_hits != 0)
        text += fmt::format(", {} ({} saved)", plural(now.tuned_hits, "tuned kernel"), time_text(now.tuning_saved_ms));
    if (now.refusals != 0) text += fmt::format(", {} refused", now.refusals);
    if (now.programs_refused != 0) text += fmt::format(", {} refused", plural(now.programs_refused, "program"));
    if (now.cache_faults != 0) text += ", " + plural(now.cache_faults, "cache fault");
    if (now.untrusted != 0) text += fmt::format(", {} untrusted", now.untrusted);
    if (!settings.disabled_reason.empty()) text += fmt::format(" (caching is off: {})", settings.disabled_reason);
    return text;
}

Cache::Cache(const CacheOptions& options) : Cache(Impl::open(options, posix_file_system())) {}
Cache::Cache(std::shared_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&&) noexcept = default;
std::string Cache::pause_recording()
{
    const Cache* const self = this;
    return pause_recording_of({&self, 1});
}

std::string Cache::pause_recording_of(std::span<const Cache* const> caches)
{
    std::vector<Impl*> impls;
    for (const Cache* cache : caches) impls.push_back(cache->m_impl.get());
    return pause_recording_of_all(impls);
}

Cache::~Cache()
{
    if (m_impl) log().info("{}", m_impl->summary().substr(std::string_view{"warmgraph: "}.size()));
}

namespace {

Spec without_outputs(Spec spec)
{
    spec.outputs.clear();
    return spec;
}

std::string& interface_fact(std::vector<cachefmt::Fact>& facts)
{
    return std::ranges::find(facts, k_interface_fact, &cachefmt::Fact::name)->value; // gather_facts() adds it
}

/// Whether the recorded inputs and states match the declaration.
bool has_regions(const cachefmt::Guards& recorded, const Interface& wanted)
{
    auto after = recorded.tensors.begin(); // usually in the same order, except outputs
    return std::ranges::all_of(wanted.regions, [&](const RegionDecl& region) {
        auto tensor =
            std::find_if(after, recorded.tensors.end(), [&](const auto& one) { return one.name == region.name; });
        if (tensor == recorded.tensors.end())
            tensor = std::ranges::find(recorded.tensors, region.name, &cachefmt::TensorSpec::name);
        if (tensor == recorded.tensors.end()) return false;
        after = tensor + 1;
        return tensor->dtype == region.dtype && tensor->sizes == region.sizes &&
               (region.strides.empty() || tensor->strides == region.strides);
    });
}

} // namespace

std::optional<std::string> Cache::find(const std::string& name, const Device& device, Spec spec) const
{
    value_or_raise(cachefmt::check_name("function name", name));
    require_version("looked for", name, spec);
    const Policy policy = spec.policy.value_or(m_impl->settings.policy);
    if (!m_impl->looks_for_entries(policy)) return std::nullopt;
    const Interface interface =
        value_or_raise(spec.outputs.empty() ? interface_of(spec) : interface_of(without_outputs(spec)));
    const auto& backend = *DeviceAccess::impl(device)->device;
    const auto variants = m_impl->store->variants(m_impl->settings.key(name, backend));
    if (!variants) {
        m_impl->counters.cache_fault();
        log().warn("cannot look for entries of '{}': {}", name, variants.error().message);
        return std::nullopt;
    }
    auto facts = gather_facts(*m_impl, name, spec, backend, "", nullptr);
    std::optional<std::string> found;
    std::chrono::system_clock::time_point last_used{};
    for (const auto& variant : *variants) {
        if (!variant.header || variant.header->kind != cachefmt::EntryKind::graph) continue;
        if (found && variant.last_used <= last_used) continue;
        const cachefmt::Guards& recorded = variant.header->guards;
        const auto outputs = std::ranges::find(recorded.facts, k_interface_fact, &cachefmt::Fact::name);
        if (outputs == recorded.facts.end()) continue;
        interface_fact(facts) = outputs->value; // contains the outputs, which are not known yet
        // Tensors and values belong to each call.
        if (!has_regions(recorded, interface) ||
            !guards::evaluate_facts(recorded.facts, facts, m_impl->settings.relaxation).empty())
            continue;
        const auto metadata = std::ranges::find(recorded.facts, k_metadata_fact, &cachefmt::Fact::name);
        found = metadata != recorded.facts.end() ? metadata->value : "";
        last_used = variant.last_used;
    }
    return found;
}

replay::ImageSource Cache::Impl::image_source() const
{
    return [store = store, why_off = settings.disabled_reason](const cachefmt::ImageRef& image) -> Result<Bytes> {
        if (!store) return fail(ErrorCode::not_found, "its code is not stored: {}", why_off);
        return store->image_of_entry(image);
    };
}

TunerSources Cache::Impl::tuner_sources(std::shared_ptr<Impl> self)
{
    return {std::move(self),
            store,
            settings.disabled_reason,
            settings.kinds.contains(store::ArtifactKind::tuned),
            settings.policy,
            programs,
            touched,
            tunings};
}

Tuner Cache::tuner(const Device& device, const TuningOptions& options)
{
    return TunerAccess::make(m_impl->tuner_sources(m_impl), device, options);
}

Statistics Cache::statistics() const { return m_impl->statistics(); }
std::string Cache::summary() const { return m_impl->summary(); }
std::string Cache::directory() const { return m_impl->settings.directory; }
std::string Cache::disabled_reason() const { return m_impl->settings.disabled_reason; }

namespace {

/// The functions of this model, configuration and rank on disk, for all backends.
std::vector<cachefmt::FunctionKey> functions_of(const Cache::Impl& impl, std::string_view function)
{
    std::vector<cachefmt::FunctionKey> result;
    if (!impl.store) return result;
    const std::string rank = cachefmt::folder_name(impl.settings.rank);
    const auto models =
        cachefmt::model_infos(impl.settings.options.model, impl.settings.shape_mode(), impl.settings.options.config);
    for (auto& key : value_or_raise(impl.store->functions())) {
        const bool ours = std::ranges::find(models, key.model_info) != models.end();
        if (ours && key.rank == rank && (function.empty() || key.function == function))
            result.push_back(std::move(key));
    }
    return result;
}

} // namespace

std::string Cache::readable(std::string_view function) const
{
    std::string text;
    for (const auto& key : functions_of(*m_impl, function))
        for (const auto& variant : value_or_raise(m_impl->store->variants(key))) {
            const auto cannot = [&](const Error& error) {
                text += fmt::format("{} cannot be used: {}\n", short_hex(variant.guards_digest), error.message);
            };
            // entry() would report a newer warmgraph's file as damaged, so this uses the header's error.
            if (!variant.header) {
                cannot(variant.header.error());
                continue;
            }
            auto entry = m_impl->store->entry({key, variant.guards_digest});
            if (!entry)
                cannot(entry.error());
            else if (*entry)
                text += cachefmt::to_readable(**entry) + "\n";
        }
    return text;
}

std::uint64_t Cache::clear(std::string_view function)
{
    std::uint64_t removed = 0;
    if (!m_impl->store) return removed;
    // Each request searches the whole folder for images, so one request clears all functions.
    store::ClearRequest request{.rank = cachefmt::folder_name(m_impl->settings.rank)};
    if (!function.empty()) request.function = function;
    for (const std::string& model : cachefmt::model_infos(m_impl->settings.options.model, m_impl->settings.shape_mode(),
                                                          m_impl->settings.options.config)) {
        request.model = model;
        removed += value_or_raise(m_impl->store->clear(request)).of(store::ArtifactKind::entries).files;
    }
    return removed;
}

std::uint64_t Cache::clear_kind(std::string_view kind)
{
    std::vector<store::ArtifactKind> kinds = store::kinds_for(store::KindUse::budgeted);
    if (kind != "all")
        kinds = {value_or_raise(store::parse_kind("clear_kind", kind, store::KindUse::budgeted, {"all"}))};
    std::uint64_t removed = 0;
    if (!m_impl->store) return removed;
    for (const store::ArtifactKind one : kinds)
        removed += one == store::ArtifactKind::entries
                       ? clear()
                       : value_or_raise(m_impl->store->clear({.kinds = {one}})).of(one).files;
    return removed;
}

std::string_view version() noexcept { return WARMGRAPH_VERSION; }

std::string_view built_backends() noexcept { return backends::built_backend_names(); }

} // namespace warmgraph
