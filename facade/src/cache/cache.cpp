#include <algorithm>

#include "cache/cache_impl.hpp"
#include "warmgraph/autotune/tuner_impl.hpp"
#include "warmgraph/backends/built.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/cachefmt/readable.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

KindStatistics kind_of(const ProgramCounts& counts)
{
    return {.hits = counts.loaded,
            .misses = counts.compiled,
            .made = counts.compiled,
            .refused = counts.refused,
            .making_ms = counts.compile_ms,
            .load_ms = counts.load_ms,
            .saved_ms = counts.saved_ms,
            .miss_reasons = counts.miss_reasons};
}

KindStatistics kind_of(const TuningStatistics& tuning)
{
    return {.hits = tuning.hits,
            .misses = tuning.misses,
            .made = tuning.tuned,
            .making_ms = tuning.tuning_ms,
            .load_ms = tuning.load_ms,
            .saved_ms = tuning.saved_ms,
            .miss_reasons = tuning.miss_reasons};
}

} // namespace

namespace {

RemoteStatistics to_statistics(const remote::Counts& counts)
{
    RemoteStatistics result;
    result.label = counts.label;
    result.hits = counts.hits;
    result.misses = counts.misses;
    result.puts = counts.puts;
    result.bytes_read = counts.bytes_read;
    result.bytes_left = counts.bytes_left;
    result.bytes_written = counts.bytes_written;
    result.read_ms = counts.read_ms;
    result.write_ms = counts.write_ms;
    result.skipped = counts.skipped;
    result.errors = counts.errors;
    return result;
}

} // namespace

Statistics Cache::Impl::statistics() const
{
    Statistics now = counters.snapshot();
    now.images_loaded = modules.count();
    const ProgramCounts counts = programs->counts();
    const TuningStatistics tuning = tunings.total();
    now.kinds[ArtifactKind::compiled] = kind_of(counts);
    now.kinds[ArtifactKind::tuned] = kind_of(tuning);
    KindStatistics& shapes = now.kinds[ArtifactKind::profiles];
    if (profiles) {
        shapes.hits = profiles->hits();
        shapes.misses = profiles->misses();
    }
    now.cache_faults += counts.faults + tuning.faults;
    for (const auto& one : remotes) now.remotes.push_back(to_statistics(one->counts()));
    return now;
}

std::string Cache::Impl::summary() const
{
    const Statistics now = statistics();
    const KindStatistics entries = now.of(ArtifactKind::entries), compiled = now.of(ArtifactKind::compiled),
                         tuned = now.of(ArtifactKind::tuned);
    std::string text = fmt::format("warmgraph: {}, {}, {}, {} to load, {} saved", plural(entries.hits, "hit"),
                                   plural(entries.misses, "miss"), plural(modules.count(), "image"),
                                   time_text(entries.load_ms), time_text(entries.saved_ms));
    if (compiled.hits != 0)
        text += fmt::format(", {} loaded ({} saved)", plural(compiled.hits, "program"), time_text(compiled.saved_ms));
    if (tuned.hits != 0)
        text += fmt::format(", {} ({} saved)", plural(tuned.hits, "tuned kernel"), time_text(tuned.saved_ms));
    if (entries.refused != 0) text += fmt::format(", {} refused", entries.refused);
    if (compiled.refused != 0) text += fmt::format(", {} refused", plural(compiled.refused, "program"));
    if (now.cache_faults != 0) text += ", " + plural(now.cache_faults, "cache fault");
    if (now.untrusted != 0) text += fmt::format(", {} untrusted", now.untrusted);
    if (!settings.disabled_reason.empty()) text += fmt::format(" (caching is off: {})", settings.disabled_reason);
    return text;
}

Cache::Cache(const CacheOptions& options) : Cache(Impl::open(options, posix_file_system())) {}
Cache::Cache(std::shared_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Cache CacheAccess::open(const CacheOptions& options, FileSystem& files)
{
    return Cache{Cache::Impl::open(options, files)};
}
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&&) noexcept = default;
Cache::~Cache()
{
    if (m_impl) log().info("{}", m_impl->summary().substr(std::string_view{"warmgraph: "}.size()));
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
            tunings,
            settings.options.cache_key_tag};
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

/// Returns the functions of this model, configuration and rank on disk, for all backends.
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
            // Uses the header's error, because entry() would report the file of a newer warmgraph as damaged.
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

namespace {

std::uint64_t clear_entries(const Cache::Impl& impl, std::string_view function)
{
    std::uint64_t removed = 0;
    // One request clears all functions, because each request searches the whole folder for images.
    store::ClearRequest request{.rank = cachefmt::folder_name(impl.settings.rank)};
    if (!function.empty()) request.function = function;
    for (const std::string& model :
         cachefmt::model_infos(impl.settings.options.model, impl.settings.shape_mode(), impl.settings.options.config)) {
        request.model = model;
        removed += value_or_raise(impl.store->clear(request)).of(store::ArtifactKind::entries).files;
    }
    return removed;
}

} // namespace

std::uint64_t Cache::clear(std::string_view function, std::string_view kind)
{
    std::vector<store::ArtifactKind> kinds = store::kinds_for(store::KindUse::budgeted);
    if (kind != "all") kinds = {value_or_raise(store::parse_kind("clear", kind, store::KindUse::budgeted, {"all"}))};
    if (!function.empty() && kind != to_string(store::ArtifactKind::entries))
        raise({ErrorCode::invalid_argument,
               fmt::format("clear has the function '{}' and the kind '{}': only entries belong to a function", function,
                           kind)});
    std::uint64_t removed = 0;
    if (!m_impl->store) return removed;
    for (const store::ArtifactKind one : kinds)
        removed += one == store::ArtifactKind::entries
                       ? clear_entries(*m_impl, function)
                       : value_or_raise(m_impl->store->clear({.kinds = {one}})).of(one).files;
    return removed;
}

std::string_view version() noexcept { return WARMGRAPH_VERSION; }

std::string_view built_backends() noexcept { return backends::built_backend_names(); }

} // namespace warmgraph
