// Cache::save_cache_artifacts, load_cache_artifacts and check_bundle; opens bundles as layers below the folder.
#include <algorithm>
#include <map>

#include "cache/cache_impl.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/bundle/artifact_compatibility.hpp"
#include "warmgraph/bundle/bundle_tier.hpp"
#include "warmgraph/bundle/compatibility.hpp"
#include "warmgraph/bundle/transfer.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/guards/environment.hpp"
#include "warmgraph/profile/profile_file.hpp"
#include "warmgraph/store/torch_artifacts.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

std::vector<SkippedArtifact> to_skipped(const std::vector<bundle::UnmovedArtifact>& left)
{
    std::vector<SkippedArtifact> result;
    for (const auto& [name, why] : left) result.push_back({name, why});
    return result;
}

CacheInfo to_info(const bundle::Transfer& transfer)
{
    CacheInfo info;
    for (const auto& [kind, amount] : transfer.moved)
        info.kinds.push_back({bundle::name_of(kind), amount.count, amount.bytes, amount.seconds, amount.names});
    info.there = to_skipped(transfer.there);
    info.skipped = to_skipped(transfer.skipped);
    return info;
}

FitVerdict to_verdict(bundle::Verdict verdict) noexcept
{
    switch (verdict) {
    case bundle::Verdict::fits: return FitVerdict::fits;
    case bundle::Verdict::fits_after: return FitVerdict::fits_after;
    case bundle::Verdict::does_not: break;
    }
    return FitVerdict::does_not;
}

bundle::DeviceOf device_of(const Device& device)
{
    return [own = DeviceAccess::impl(device)->device](const std::string& backend) {
        return own->backend() == backend ? own.get() : nullptr;
    };
}

BundledEntry checked(const bundle::Member& member, const Result<bundle::Compatibility>& fit)
{
    const std::string name(member.name);
    if (!fit) return {name, FitVerdict::does_not, std::string(to_string(fit.error().code)), fit.error().message};
    return {name, to_verdict(fit->verdict), fit->field, fit->detail};
}

/// Counts disk errors and damage in the same way as for entries.
template <class T>
Result<T> counted(Counters& counters, Result<T> result)
{
    if (result) return result;
    const ErrorCode code = result.error().code;
    const bool is_callers = code == ErrorCode::invalid_argument || code == ErrorCode::unsupported;
    if (!is_callers && code != ErrorCode::untrusted) counters.cache_fault();
    return result;
}

/// Returns the device's facts and the environment variables that the entry names.
bundle::MachineFacts facts_for(const cachefmt::Guards& recorded, const std::vector<cachefmt::Fact>& device)
{
    bundle::MachineFacts here = device;
    for (const auto& fact : recorded.facts) {
        if (!fact.name.starts_with(cachefmt::fact::k_environment)) continue;
        const auto value = environment(fact.name.c_str() + cachefmt::fact::k_environment.size());
        here.push_back({fact.name, value.value_or(std::string(cachefmt::fact::k_unset)), fact.role});
    }
    guards::canonicalize(here);
    return here;
}

} // namespace

namespace {

/// Returns the entries that this process recorded or hit. With each forward also returns its backwards.
std::vector<cachefmt::EntryKey> touched_entries(const Cache::Impl& cache)
{
    const auto touched = cache.touched.entries();
    auto keys = touched;
    for (const auto& key : touched) {
        const auto header = cache.store->header(key).value_or(nullptr);
        if (!header || !header->recording) continue;
        for (const auto& variant : value_or_raise(cache.store->variants(key.function)))
            if (variant.header && variant.header->recording && variant.header->recording->id == header->recording->id)
                keys.insert(variant.header->key);
    }
    return {keys.begin(), keys.end()};
}

/// Returns the touched artifacts of the kinds compiled, tuned and torch.
std::vector<store::ArtifactName> touched_artifacts(const Cache::Impl& cache)
{
    auto artifacts = cache.programs->touched();
    const auto others = cache.touched.artifacts();
    artifacts.insert(artifacts.end(), others.begin(), others.end());
    return artifacts;
}

/// Adds the profiles to the bundle, with the counts of this process, which may not be in the folder yet or must not be
/// written there.
bundle::Transfer gather_profiles(bundle::Writer& writer, ProfileKeeper& keeper)
{
    std::map<store::Name, Bytes> texts;
    std::vector<store::ArtifactName> names;
    for (const profile::Profile& counted : keeper.counted()) {
        const std::string text = profile::encode(counted);
        names.push_back(profile::Profiles::name_of(counted.key));
        texts.emplace(names.back(), Bytes(as_bytes(text).begin(), as_bytes(text).end()));
    }
    return value_or_raise(bundle::gather(
        writer, names, [&](const store::Name& name) -> Result<std::optional<Bytes>> { return texts.at(name); }));
}

} // namespace

std::optional<CacheArtifacts> Cache::save_cache_artifacts(std::span<const Cache* const> caches,
                                                          const ArtifactOptions& options)
{
    CacheArtifacts artifacts;
    const SigningKey* key = nullptr;
    for (const Cache* cache : caches)
        if (key == nullptr) key = cache->m_impl->settings.trust.sign_with.get();
    if (options.torch && key == nullptr)
        raise({ErrorCode::invalid_argument,
               "code that PyTorch compiled can run anything where it is used, and can only be put into signed "
               "artifacts: set sign_with_file (WARMGRAPH_SIGN_KEY_FILE)"});
    bundle::Writer writer(bundle::into_bytes(artifacts.bytes), {.sign_with = key});
    bundle::Transfer all;
    for (const Cache* cache : caches) {
        store::LocalStore* const store = cache->m_impl->store.get();
        if (store == nullptr) continue;
        const auto get = [store](const store::Name& name) { return store->object(name); };
        Impl& impl = *cache->m_impl;
        all.merge(value_or_raise(bundle::gather(writer, touched_entries(impl), get)));
        auto touched = touched_artifacts(impl);
        std::erase_if(touched, [&](const store::ArtifactName& name) {
            return name.kind == store::ArtifactKind::torch && !options.torch;
        });
        all.merge(value_or_raise(bundle::gather(writer, touched, get)));
        if (impl.profiles) all.merge(gather_profiles(writer, *impl.profiles));
    }
    if (writer.members() == 0) return std::nullopt;
    value_or_raise(writer.finish());
    artifacts.info = to_info(all);
    return artifacts;
}

std::optional<CacheArtifacts> Cache::save_cache_artifacts(const ArtifactOptions& options) const
{
    const Cache* const self = this;
    return save_cache_artifacts({&self, 1}, options);
}

CacheInfo Cache::load_cache_artifacts(const Device& device, std::span<const std::byte> bytes)
{
    if (!m_impl->store)
        raise(
            {ErrorCode::io_failed, "artifacts cannot be loaded: caching is off: " + m_impl->settings.disabled_reason});
    const auto opened = value_or_raise(bundle::Bundle::open(bundle::over_bytes(bytes), m_impl->settings.trust));
    const auto facts = DeviceAccess::impl(device)->device->facts();
    const auto wanted = [&](const cachefmt::EntryHeader& header) -> std::string {
        const auto fit = bundle::judge(header.guards, facts_for(header.guards, facts), m_impl->settings.relaxation);
        return fit.verdict == bundle::Verdict::fits ? "" : fmt::format("{}: {}", bundle::to_text(fit), fit.detail);
    };
    bundle::UnpackOptions how;
    how.artifacts = [of = device_of(device)](const bundle::Bundle& from, const bundle::Member& member) {
        return bundle::why_not_here(from, member, of);
    };
    how.profile_lock = [store = m_impl->store](const auto& name) { return store->try_artifact_lock(name); };
    return to_info(value_or_raise(bundle::unpack(*opened, m_impl->store->tier(), wanted, how)));
}

namespace {

/// Adds the cache's tag to the facts that make the key of PyTorch's artifacts.
store::TorchFacts tagged(const CacheSettings& settings, std::map<std::string, std::string> facts)
{
    const std::string& tag = settings.options.cache_key_tag;
    if (!tag.empty()) facts.insert_or_assign(k_key_tag, tag);
    return facts;
}

} // namespace

void Cache::put_artifact(std::string_view kind, const std::map<std::string, std::string>& facts,
                         std::span<const std::byte> bytes)
{
    value_or_raise(store::parse_kind("put_artifact", kind, store::KindUse::opaque));
    if (!m_impl->store)
        raise({ErrorCode::io_failed, fmt::format("the artifact of kind '{}' is not stored: caching is off: {}", kind,
                                                 m_impl->settings.disabled_reason)});
    const std::string now = to_iso8601(system_clock().wall());
    const auto of = tagged(m_impl->settings, facts);
    value_or_raise(counted(m_impl->counters, store::put_torch(*m_impl->store, of, now, bytes, m_impl->settings.trust)));
    m_impl->touched.note(store::torch_name(of));
}

std::optional<std::vector<std::byte>> Cache::artifact(std::string_view kind,
                                                      const std::map<std::string, std::string>& facts) const
{
    value_or_raise(store::parse_kind("artifact", kind, store::KindUse::opaque));
    if (!m_impl->store) return std::nullopt;
    const auto of = tagged(m_impl->settings, facts);
    auto found =
        value_or_raise(counted(m_impl->counters, store::find_torch(*m_impl->store, of, m_impl->settings.trust)));
    if (found) m_impl->touched.note(store::torch_name(of));
    return found;
}

BundleCheck Cache::check_bundle(const std::string& file, const Device& device) const
{
    const auto opened =
        value_or_raise(bundle::Bundle::open(value_or_raise(bundle::open_file(file)), m_impl->settings.trust));
    const auto facts = DeviceAccess::impl(device)->device->facts();
    BundleCheck check;
    std::vector<cachefmt::EntryHeader> headers;
    for (const bundle::Member& member : opened->members()) {
        if (store::is_blob(member.kind)) continue; // images and constants are moved with their entries
        if (member.kind != store::ArtifactKind::entries) {
            check.entries.push_back(checked(member, bundle::judge_artifact(*opened, member, device_of(device))));
            continue;
        }
        auto header = opened->header(member);
        if (!header) {
            check.entries.push_back(checked(member, std::unexpected(header.error())));
            continue;
        }
        const bundle::MachineFacts here = facts_for(header->guards, facts);
        check.entries.push_back(checked(member, bundle::judge(header->guards, here, m_impl->settings.relaxation)));
        headers.push_back(std::move(*header));
    }
    cachefmt::Guards shared;
    shared.facts = bundle::shared_environment(headers);
    const auto fit = bundle::judge(shared, facts_for(shared, facts), m_impl->settings.relaxation);
    check.environment_key = bundle::common_environment_key(headers);
    check.environment_here = guards::environment_key(facts_for({}, facts));
    check.environment = bundle::environment_text(shared.facts);
    check.verdict = to_verdict(fit.verdict);
    check.detail = fit.detail;
    return check;
}

std::size_t Cache::Impl::open_bundles(const std::vector<std::uint32_t>& owners)
{
    std::size_t opened = 0;
    for (const std::string& file : settings.options.bundles) {
        auto bundle = bundle::Bundle::open_trusted(file, settings.trust, owners);
        if (!bundle) { // without the bundle only its benefit is lost, as with an unusable folder
            log().warn("bundle {} is not used: {}", file, bundle.error().message);
            counters.cache_fault();
            continue;
        }
        cachefmt::Trust its = settings.trust;
        its.require = (*bundle)->requires_signature();
        store->add_layer(std::make_shared<bundle::BundleTier>(std::move(*bundle), file), its);
        ++opened;
    }
    return opened;
}

} // namespace warmgraph
