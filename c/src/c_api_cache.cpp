// The C interface: the cache of a model.
#include <algorithm>
#include <cstring>

#include "c_api.hpp"
#include "warmgraph/base/cache_folder.hpp"
#include "warmgraph/base/signing_key.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

const wg_cache& need_cache(const wg_cache* cache) { return need(cache, "cache", "one from wg_cache_open"); }

std::string or_empty(const char* text) { return text != nullptr ? text : ""; }

std::optional<int> rank_or_environment(std::int32_t rank) noexcept
{
    constexpr std::int32_t k_from_environment = -1;
    if (rank == k_from_environment) return std::nullopt;
    return rank;
}

ArtifactKind to_kind(wg_artifact_kind kind)
{
    if (kind < wg_kind_entries || kind > wg_kind_torch)
        refuse("the kind is {}, expected one of wg_artifact_kind_values", kind);
    return static_cast<ArtifactKind>(kind);
}
static_assert(static_cast<int>(ArtifactKind::torch) == wg_kind_torch);

wg_cache_options default_options() noexcept
{
    wg_cache_options options{};
    options.size = sizeof options;
    options.pauses_recording = 1;
    options.world_size = options.global_rank = options.tp_rank = options.pp_rank = -1;
    return options;
}

SigningOptions to_signing(const wg_cache_options& options)
{
    SigningOptions result;
    result.sign_with = or_empty(options.sign_with);
    result.sign_with_file = or_empty(options.sign_with_file);
    if (options.accept_key_count != 0) need(options.accept_keys, "accept_keys", "an array of accept_key_count keys");
    for (std::uint64_t i = 0; i < options.accept_key_count; ++i)
        result.accept.push_back(need_text(options.accept_keys[i], "accepted key"));
    result.accept_file = or_empty(options.accept_file);
    result.require = options.require_signed != 0;
    return result;
}

void set_kinds(CacheOptions& result, const wg_cache_options& options)
{
    if (options.kinds != nullptr) result.kinds.emplace();
    for (const wg_artifact_kind kind : need_array(options.kinds, options.kind_count, "kinds"))
        result.kinds->insert(to_kind(kind));
    for (const auto& [kind, bytes] :
         need_array(options.max_bytes_by_kind, options.max_bytes_by_kind_count, "max_bytes_by_kind"))
        result.max_bytes_by_kind[to_kind(kind)] = bytes;
    for (const auto& [kind, level, above] : need_array(options.compression, options.compression_count, "compression"))
        result.compression[to_kind(kind)] = {.level = level, .above = above};
}

void set_remotes(CacheOptions& result, const wg_cache_options& options)
{
    if (options.remotes != nullptr) result.remote.emplace();
    for (const char* const url : need_array(options.remotes, options.remote_count, "remotes"))
        result.remote->push_back(need_text(url, "remote"));
    if (options.remote_deadline_ms != 0) result.remote_deadline_ms = options.remote_deadline_ms;
    result.cache_key_tag = or_empty(options.cache_key_tag);
    result.tiers = to_tiers(options);
}

CacheOptions to_options(const wg_cache_options* given)
{
    need(given, "options", "options from wg_cache_options_init, with a model");
    wg_cache_options options = default_options();
    copy_versioned(&options, sizeof options, given, k_least_cache_options, "wg_cache_options");
    CacheOptions result;
    result.model = need_text(options.model, "model name");
    result.config = to_map(options.config, options.config_count, "the model's configuration");
    result.cache_dir = or_empty(options.cache_dir);
    result.shapes = options.dynamic != 0 ? ShapeMode::dynamic : ShapeMode::fixed;
    result.world_size = rank_or_environment(options.world_size);
    result.global_rank = rank_or_environment(options.global_rank);
    result.tp_rank = rank_or_environment(options.tp_rank);
    result.pp_rank = rank_or_environment(options.pp_rank);
    result.policy = to_policy(options.policy);
    result.accept_newer_driver = options.accept_newer_driver != 0;
    result.share_with_group = options.share_with_group != 0;
    if (options.max_variants != 0) result.max_variants = options.max_variants;
    result.verify_on_load = options.verify_on_load != 0;
    if (options.record_wait_ms != 0) result.record_wait_ms = options.record_wait_ms;
    if (options.record_on_demand != 0) result.record = RecordWhen::on_demand;
    if (options.probing_ms != 0) result.probing_ms = options.probing_ms;
    if (options.trusted_owner_count != 0) {
        need(options.trusted_owners, "trusted_owners", "an array of trusted_owner_count user ids");
        result.trusted_owners.assign(options.trusted_owners, options.trusted_owners + options.trusted_owner_count);
    }
    result.max_bytes = options.max_bytes;
    result.max_files = options.max_files;
    result.signing = to_signing(options);
    if (options.bundle_count != 0) need(options.bundles, "bundles", "an array of bundle_count files");
    for (std::uint64_t i = 0; i < options.bundle_count; ++i)
        result.bundles.push_back(need_text(options.bundles[i], "bundle"));
    if (options.profile < -1 || options.profile > 1)
        refuse("profile is {}, expected 1 (yes), -1 (no) or 0 (as WARMGRAPH_PROFILE says)", options.profile);
    if (options.profile != 0) result.profile = options.profile > 0;
    result.pauses_recording = options.pauses_recording != 0;
    set_kinds(result, options);
    set_remotes(result, options);
    return result;
}

/// Options whose secrets the destructor overwrites.
struct WipedOptions {
    CacheOptions options;
    explicit WipedOptions(CacheOptions its) : options(std::move(its)) {}
    WipedOptions(const WipedOptions&) = delete;
    WipedOptions& operator=(const WipedOptions&) = delete;
    ~WipedOptions()
    {
        wipe(options.signing.sign_with);
        for (std::string& key : options.signing.accept) wipe(key);
        if (options.remote)
            for (std::string& url : *options.remote) wipe(url); // it may have a password
    }
};

} // namespace

wg_status wg_cache_options_init(wg_cache_options* options, uint64_t size)
{
    return guarded([&] {
        need(options, "options", "a variable for the default options");
        check_size(size, k_least_cache_options, "wg_cache_options");
        wg_cache_options defaults = default_options();
        defaults.size = size;
        write_versioned(options, size, &defaults, sizeof defaults);
    });
}

wg_status wg_cache_open(const wg_cache_options* options, wg_cache** out)
{
    return guarded_handle(out, [&] {
        const WipedOptions given{to_options(options)};
        Cache cache{given.options};
        release_with(given.options.tiers);
        std::string directory = cache.directory(), reason = cache.disabled_reason();
        return new wg_cache{std::move(cache), std::move(directory), std::move(reason)};
    });
}

const char* wg_cache_folder(const char* cache_dir)
{
    thread_local std::string t_folder;
    return guarded_get<const char*>(nullptr, [&] {
        t_folder = cache_folder(or_empty(cache_dir)).string();
        return t_folder.c_str();
    });
}

wg_status wg_cache_close(wg_cache* cache)
{
    return guarded([&] { delete cache; });
}

const char* wg_cache_directory(const wg_cache* cache)
{
    return guarded_get<const char*>(nullptr, [&] { return need_cache(cache).directory.c_str(); });
}

const char* wg_cache_disabled_reason(const wg_cache* cache)
{
    return guarded_get<const char*>(nullptr, [&] { return need_cache(cache).disabled_reason.c_str(); });
}

wg_status wg_cache_summary(const wg_cache* cache, char* text, uint64_t capacity, uint64_t* length)
{
    return guarded([&] { write_text(need_cache(cache).cache.summary(), text, capacity, length); });
}

wg_status wg_cache_readable(const wg_cache* cache, const char* function, char* text, uint64_t capacity,
                            uint64_t* length)
{
    return guarded([&] {
        const auto& source = need_cache(cache).cache;
        write_text(source.readable(need_text(function, "function name")), text, capacity, length);
    });
}

wg_status wg_record_pending(wg_cache* cache, uint64_t* recorded)
{
    return guarded([&] {
        need_cache(cache);
        const std::size_t count = cache->cache.record_pending();
        if (recorded != nullptr) *recorded = count;
    });
}

wg_status wg_cache_clear(wg_cache* cache, const char* function, const char* kind, uint64_t* removed)
{
    return guarded([&] {
        need_cache(cache);
        const std::uint64_t count = cache->cache.clear(or_empty(function), kind != nullptr ? kind : "entries");
        if (removed != nullptr) *removed = count;
    });
}

wg_status wg_cache_note_refusal(wg_cache* cache, const wg_device* device, const char* function,
                                const wg_refusal* refusal)
{
    return guarded([&] {
        need_cache(cache);
        wg_refusal from{};
        copy_versioned(&from, sizeof from, &need(refusal, "refusal", "a wg_refusal"), sizeof from, "wg_refusal");
        const Refusal known{need_text(from.word, "the refusal's word"), need_text(from.text, "the refusal's text"),
                            from.calls};
        cache->cache.note_refusal(need_text(function, "function"), need_device(device).device, known);
    });
}

wg_status wg_cache_statistics(const wg_cache* cache, wg_statistics* out)
{
    return guarded([&] {
        const Statistics from = need_cache(cache).cache.statistics();
        const std::uint64_t size = need(out, "out", "a variable for the statistics").size;
        check_size(size, k_least_statistics, "wg_statistics");
        const wg_statistics known{size,
                                  from.cache_faults,
                                  from.untrusted,
                                  from.images_loaded,
                                  from.captures_written,
                                  from.captures_paired,
                                  from.captures_ignored};
        write_versioned(out, size, &known, sizeof known);
    });
}

wg_status wg_cache_kind_statistics(const wg_cache* cache, wg_artifact_kind kind, wg_kind_statistics* out)
{
    return guarded([&] {
        const KindStatistics from = need_cache(cache).cache.statistics().of(to_kind(kind));
        const std::uint64_t size = need(out, "out", "a variable for the statistics").size;
        check_size(size, k_least_kind_statistics, "wg_kind_statistics");
        const wg_kind_statistics known{size,         from.hits,      from.misses,  from.made,
                                       from.refused, from.making_ms, from.load_ms, from.saved_ms};
        write_versioned(out, size, &known, sizeof known);
    });
}

wg_status wg_cache_miss_reasons(const wg_cache* cache, wg_artifact_kind kind, char* text, uint64_t capacity,
                                uint64_t* length)
{
    return guarded([&] {
        const KindStatistics from = need_cache(cache).cache.statistics().of(to_kind(kind));
        write_text(fmt::format("{}", fmt::join(from.miss_reasons, "\n")), text, capacity, length);
    });
}
