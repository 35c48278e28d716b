// Opens a cache: reads the settings, which come from the program or else from the environment, and opens the folder.
#include <algorithm>
#include <charconv>
#include <iterator>

#include <unistd.h>

#include "cache/cache_impl.hpp"
#include "cache/user_tier.hpp"
#include "warmgraph/base/cache_folder.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/store/settings.hpp"
#include "warmgraph/store/signing.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

Policy parse_policy(const std::string& text)
{
    if (text == "read_write") return Policy::read_write;
    if (text == "read_only") return Policy::read_only;
    if (text == "refresh") return Policy::refresh;
    if (text == "off") return Policy::off;
    if (text == "require_hit") return Policy::require_hit;
    if (text == "no_compile") return Policy::no_compile;
    raise({ErrorCode::invalid_argument,
           fmt::format(
               "WARMGRAPH_POLICY is '{}', expected read_write, read_only, refresh, off, require_hit or no_compile",
               text)});
}

Policy resolve_policy(const CacheOptions& options)
{
    if (options.policy) return *options.policy;
    const auto text = environment("WARMGRAPH_POLICY");
    return text && !text->empty() ? parse_policy(*text) : Policy::read_write;
}

/// Sets when graphs are verified. WARMGRAPH_VERIFY overrides the program's setting.
void resolve_verification(Cache::Impl& impl)
{
    impl.settings.verifies_first = impl.settings.options.verify_on_load;
    const auto text = environment("WARMGRAPH_VERIFY");
    if (!text || text->empty()) return;
    const auto wrong = [&] {
        raise({ErrorCode::invalid_argument,
               fmt::format("WARMGRAPH_VERIFY is '{}', expected never, first or 1/N", *text)});
    };
    impl.settings.verifies_first = *text != "never";
    if (*text == "never" || *text == "first") return;
    if (!text->starts_with("1/")) wrong();
    const char* const end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data() + 2, end, impl.settings.verify_every);
    if (error != std::errc{} || stop != end || impl.settings.verify_every == 0) wrong();
}

/// Returns the program's setting, or else the setting of WARMGRAPH_PROFILE.
bool resolve_profile(const CacheOptions& options)
{
    if (options.profile) return *options.profile;
    const auto text = environment("WARMGRAPH_PROFILE");
    if (!text || text->empty() || *text == "on" || *text == "1") return true;
    if (*text == "off" || *text == "0") return false;
    log().warn("WARMGRAPH_PROFILE is '{}', expected on or off: profiles are kept", printable(*text, 64));
    return true;
}

/// Returns the program's remotes, or else those of WARMGRAPH_REMOTE.
std::vector<remote::Settings> resolve_remotes(const CacheOptions& options)
{
    if (!options.remote) {
        const auto list = environment("WARMGRAPH_REMOTE");
        return value_or_raise(remote::parse_list(list.value_or(""), environment));
    }
    std::vector<remote::Settings> remotes;
    for (const std::string& url : *options.remote) remotes.push_back(value_or_raise(remote::parse(url, environment)));
    return remotes;
}

/// Puts the remotes below the folder and its bundles, and sends to them what this process makes and earlier ones left.
void open_remotes(Cache::Impl& impl, const std::vector<remote::Settings>& remotes)
{
    const auto& tiers = impl.settings.options.tiers;
    if (!impl.store || (remotes.empty() && tiers.empty())) return;
    impl.remotes = remote::attach(*impl.store, remotes, impl.settings.trust);
    std::ranges::move(attach_tiers(*impl.store, tiers, impl.settings.trust), std::back_inserter(impl.remotes));
    impl.remote_counts = std::make_unique<remote::LastingCounts>(*impl.store, impl.remotes);
    if (!impl.store->why_read_only().empty() || impl.settings.policy == Policy::read_only ||
        impl.settings.policy == Policy::require_hit)
        return;
    impl.uploads = std::make_unique<remote::Uploads>(
        *impl.store, impl.remotes, std::chrono::milliseconds(impl.settings.options.remote_deadline_ms));
    impl.uploads->resume();
}

/// Adds the program's tag, or else the tag of WARMGRAPH_CACHE_KEY_TAG, to the configuration, which is part of the keys of
/// entries and profiles. Without a tag nothing is added, so that folders from before the option stay valid.
void resolve_key_tag(CacheOptions& options)
{
    if (options.config.contains(k_key_tag))
        raise({ErrorCode::invalid_argument,
               fmt::format("the model's configuration has the reserved name '{}': set CacheOptions::cache_key_tag",
                           k_key_tag)});
    options.cache_key_tag = value_or_raise(store::resolve_key_tag(options.cache_key_tag));
    if (!options.cache_key_tag.empty()) options.config.emplace(k_key_tag, options.cache_key_tag);
}

/// Returns the kind. Throws invalid_argument if it may not stand in this option.
ArtifactKind checked_kind(std::string_view option, ArtifactKind kind, store::KindUse use)
{
    return value_or_raise(store::parse_kind(option, to_string(kind), use));
}

/// Returns the program's setting, or else the setting of WARMGRAPH_KINDS.
store::KindSet resolve_kinds(const CacheOptions& options)
{
    if (!options.kinds) return value_or_raise(store::environment_kinds());
    store::KindSet kinds;
    for (const ArtifactKind kind : *options.kinds)
        kinds.insert(checked_kind("CacheOptions::kinds", kind, store::KindUse::switched));
    return kinds;
}

/// Opens the profiles. Call this when the store is open.
void open_profiles(Cache::Impl& impl)
{
    if (!resolve_profile(impl.settings.options) || !impl.settings.kinds.contains(store::ArtifactKind::profiles) ||
        !impl.store)
        return;
    const bool writes = (impl.settings.policy == Policy::read_write || impl.settings.policy == Policy::refresh) &&
                        impl.store->why_read_only().empty() && impl.settings.may_publish();
    impl.profiles =
        std::make_unique<ProfileKeeper>(*impl.store, writes ? ProfileKeeper::Writing::yes : ProfileKeeper::Writing::no,
                                        [&impl](const std::string& doing, const Error& error) {
                                            impl.counters.cache_fault();
                                            log().warn("cannot {} a shape profile: {}", doing, error.message);
                                        });
}

void resolve_trust(Cache::Impl& impl, const SigningOptions& given)
{
    store::SigningSource source;
    source.sign_with = given.sign_with;
    source.sign_with_file = given.sign_with_file;
    source.accept = given.accept;
    source.accept_file = given.accept_file;
    source.require = given.require;
    impl.settings.trust = value_or_raise(store::resolve_signing(source, environment));
    if (!impl.settings.may_publish())
        log().info("the cache is only read: signatures are required, but there is no key to sign with: set "
                   "sign_with_file (WARMGRAPH_SIGN_KEY_FILE)");
}

std::vector<std::uint32_t> resolve_owners(const CacheOptions& options)
{
    constexpr const char* k_variable = "WARMGRAPH_TRUSTED_OWNERS";
    auto owners = value_or_raise(store::parse_owners(k_variable, environment(k_variable).value_or("")));
    owners.insert(owners.end(), options.trusted_owners.begin(), options.trusted_owners.end());
    return owners;
}

/// Returns the limits for all bytes, for the bytes of each kind, and for files. The byte limits and the file limit
/// come, separately, from the program or else from the environment.
store::Budget resolve_budget(const CacheOptions& options)
{
    store::Budget budget = store::environment_budget();
    if (options.max_bytes != 0) budget.bytes = options.max_bytes;
    if (options.max_files != 0) budget.files = options.max_files;
    for (const auto& [kind, bytes] : options.max_bytes_by_kind)
        budget.kinds[checked_kind("max_bytes_by_kind", kind, store::KindUse::budgeted)] = bytes;
    return budget;
}

store::Packings resolve_packings(const CacheOptions& options)
{
    store::Packings packings = store::environment_packings();
    for (const auto& [kind, how] : options.compression)
        value_or_raise(store::set_packing(packings, "compression", kind, {how.level, how.above}));
    return packings;
}

void open_store(Cache::Impl& impl, FileSystem& files, bool has_remotes)
{
    if (impl.settings.policy == Policy::off) {
        impl.settings.disabled_reason = "policy off";
        return;
    }
    store::StoreOptions options;
    options.sharing = impl.settings.options.share_with_group ? store::Sharing::group : store::Sharing::owner_only;
    options.max_variants = impl.settings.options.max_variants;
    options.trust = impl.settings.trust;
    const bool reads_only = impl.settings.policy == Policy::read_only || impl.settings.policy == Policy::require_hit;
    options.access = reads_only ? store::StoreMode::read_only : store::StoreMode::read_write;
    options.falls_back = true;
    options.trusted_owners = resolve_owners(impl.settings.options);
    options.budget = resolve_budget(impl.settings.options);
    options.packings = resolve_packings(impl.settings.options);
    auto store = store::LocalStore::open(impl.settings.directory, options, files);
    if (!store && (has_remotes || !impl.settings.options.bundles.empty())) {
        impl.store = store::LocalStore::without_folder(store.error().message, options);
        if (impl.open_bundles(options.trusted_owners) != 0 || has_remotes) {
            log().warn("{} are read, but nothing is recorded: {}", has_remotes ? "remotes" : "bundles",
                       store.error().message);
            return;
        }
        impl.store.reset();
    }
    if (!store) {
        // An unusable folder must not stop the program's start: only the benefit of the cache is lost.
        impl.settings.disabled_reason = store.error().message;
        log().warn("caching is off: {}", impl.settings.disabled_reason);
        impl.counters.cache_fault();
        return;
    }
    impl.store = std::move(*store);
    if (!impl.store->why_read_only().empty())
        log().warn("the cache is only read, so nothing is recorded: {}; set policy read_only if this is intended",
                   impl.store->why_read_only());
    impl.settings.directory = impl.store->root().string();
    impl.open_bundles(options.trusted_owners);
}

} // namespace

std::shared_ptr<Cache::Impl> Cache::Impl::open(const CacheOptions& options, FileSystem& files)
{
    value_or_raise(cachefmt::check_name("model name", options.model));
    if (options.max_variants == 0)
        raise({ErrorCode::invalid_argument, "max_variants is 0, expected at least 1: use policy off to cache nothing"});
    // Does not destroy the cache in a forked child: the child has none of its threads and would wait for them for ever.
    std::shared_ptr<Impl> impl(new Impl, [process = ::getpid()](Impl* held) {
        if (::getpid() == process) delete held;
    });
    value_or_raise(check_tiers(options.tiers));
    impl->settings.options = options;
    resolve_key_tag(impl->settings.options);
    wipe(impl->settings.options.signing.sign_with);
    for (std::string& key : impl->settings.options.signing.accept) wipe(key);
    if (impl->settings.options.remote)
        for (std::string& url : *impl->settings.options.remote) wipe(url); // it may have a password
    impl->settings.rank = value_or_raise(
        ranks::resolve_rank({options.world_size, options.global_rank, options.tp_rank, options.pp_rank}, environment));
    impl->settings.policy = resolve_policy(options);
    impl->settings.kinds = resolve_kinds(options);
    resolve_trust(*impl, options.signing);
    resolve_verification(*impl);
    impl->settings.relaxation.driver =
        options.accept_newer_driver ? guards::VersionRule::same_or_newer : guards::VersionRule::exact;
    impl->settings.directory = cache_folder(options.cache_dir).string();
    const auto remotes = resolve_remotes(options);
    open_store(*impl, files, !remotes.empty() || !options.tiers.empty());
    open_remotes(*impl, remotes);
    const bool keeps_programs = impl->store && impl->settings.kinds.contains(store::ArtifactKind::compiled);
    impl->programs = std::make_shared<Programs>(keeps_programs ? impl->store : nullptr, impl->settings.trust,
                                                impl->store ? store::switched_off("compiled programs")
                                                            : "caching is off: " + impl->settings.disabled_reason,
                                                impl->settings.options.cache_key_tag);
    open_profiles(*impl);
    return impl;
}

} // namespace warmgraph
