// The C interface: artifacts as bytes, and bundles.
#include <nlohmann/json.hpp>

#include "c_api.hpp"

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

namespace {

using nlohmann::json;

std::string text_of(const json& document) { return document.dump(-1, ' ', false, json::error_handler_t::replace); }

json artifact_list(const std::vector<SkippedArtifact>& artifacts)
{
    json list = json::array();
    for (const auto& [name, why] : artifacts) list.push_back({{"name", name}, {"why", why}});
    return list;
}

std::string info_text(const CacheInfo& info)
{
    json kinds = json::array();
    for (const ArtifactAmount& kind : info.kinds)
        kinds.push_back({{"kind", kind.kind},
                         {"count", kind.count},
                         {"bytes", kind.bytes},
                         {"seconds", kind.seconds},
                         {"names", kind.names}});
    return text_of({{"kinds", kinds}, {"there", artifact_list(info.there)}, {"skipped", artifact_list(info.skipped)}});
}

const char* verdict_text(FitVerdict verdict) noexcept
{
    return verdict == FitVerdict::fits ? "fits" : verdict == FitVerdict::fits_after ? "fits_after" : "does_not";
}

const wg_artifacts& need_artifacts(const wg_artifacts* artifacts)
{
    return need(artifacts, "artifacts", "the handle from wg_save_cache_artifacts or wg_load_cache_artifacts");
}

} // namespace

wg_status wg_save_cache_artifacts(const wg_cache* const* caches, uint64_t count, const wg_artifact_options* options,
                                  wg_artifacts** out)
{
    return guarded_handle(out, [&] {
        if (count != 0) need(caches, "caches", "an array of count elements");
        std::vector<const Cache*> given;
        for (std::uint64_t i = 0; i < count; ++i)
            given.push_back(&need(caches[i], "cache", "one from wg_cache_open").cache);
        ArtifactOptions chosen;
        if (options != nullptr) {
            check_size(options->size, sizeof(wg_artifact_options), "wg_artifact_options");
            chosen.torch = options->torch != 0;
        }
        auto saved = Cache::save_cache_artifacts(given, chosen);
        if (!saved)
            throw Exception(ErrorCode::not_found,
                            "there are no artifacts: this process recorded nothing and hit nothing");
        return new wg_artifacts{std::move(saved->bytes), info_text(saved->info)};
    });
}

wg_status wg_load_cache_artifacts(wg_cache* cache, const wg_device* device, const void* bytes, uint64_t size,
                                  wg_artifacts** out)
{
    return guarded([&] {
        if (out != nullptr) *out = nullptr;
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        const auto* const data = static_cast<const std::byte*>(bytes);
        if (size != 0) need(data, "bytes", "an array of size bytes");
        const CacheInfo info = owner.load_cache_artifacts(target, {data, size});
        if (out != nullptr) *out = new wg_artifacts{{}, info_text(info)};
    });
}

const void* wg_artifacts_bytes(const wg_artifacts* artifacts, uint64_t* size)
{
    return guarded_get<const void*>(nullptr, [&]() -> const void* {
        const auto& bytes = need_artifacts(artifacts).bytes;
        if (size != nullptr) *size = bytes.size();
        return bytes.empty() ? nullptr : bytes.data();
    });
}

const char* wg_artifacts_info(const wg_artifacts* artifacts)
{
    return guarded_get<const char*>(nullptr, [&] { return need_artifacts(artifacts).info.c_str(); });
}

wg_status wg_cache_put_artifact(wg_cache* cache, const char* kind, const wg_key_value* facts, uint64_t fact_count,
                                const void* bytes, uint64_t size)
{
    return guarded([&] {
        auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto* const data = static_cast<const std::byte*>(bytes);
        if (size != 0) need(data, "bytes", "an array of size bytes");
        owner.put_artifact(need_text(kind, "kind"), to_map(facts, fact_count, "facts"), {data, size});
    });
}

wg_status wg_cache_get_artifact(const wg_cache* cache, const char* kind, const wg_key_value* facts, uint64_t fact_count,
                                wg_artifacts** out)
{
    return guarded_handle(out, [&] {
        const auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        auto found = owner.artifact(need_text(kind, "kind"), to_map(facts, fact_count, "facts"));
        if (!found)
            throw Exception(ErrorCode::not_found,
                            fmt::format("there is no artifact of kind '{}' under these facts", kind));
        return new wg_artifacts{std::move(*found), info_text({})};
    });
}

wg_status wg_artifacts_destroy(wg_artifacts* artifacts)
{
    return guarded([&] { delete artifacts; });
}

wg_status wg_cache_check_bundle(const wg_cache* cache, const wg_device* device, const char* file, char* text,
                                uint64_t capacity, uint64_t* length)
{
    return guarded([&] {
        const auto& owner = need(cache, "cache", "one from wg_cache_open").cache;
        const auto& target = need_device(device).device;
        const BundleCheck check = owner.check_bundle(need_text(file, "file"), target);
        json entries = json::array();
        for (const BundledEntry& entry : check.entries)
            entries.push_back({{"name", entry.name},
                               {"verdict", verdict_text(entry.verdict)},
                               {"field", entry.field},
                               {"detail", entry.detail}});
        write_text(text_of({{"environment_key", check.environment_key},
                            {"environment_here", check.environment_here},
                            {"environment", check.environment},
                            {"verdict", verdict_text(check.verdict)},
                            {"detail", check.detail},
                            {"entries", entries}}),
                   text, capacity, length);
    });
}
