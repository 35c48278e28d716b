// `warmgraph pull`: copies what remotes have into the folder, each object verified first.
#include <algorithm>
#include <set>

#include "commands.hpp"
#include "selection.hpp"
#include "verbs/bundle/actions.hpp"
#include "verbs/remote/transfers.hpp"
#include "warmgraph/cachefmt/image_use.hpp"
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/remote/attach.hpp"
#include "warmgraph/remote/backends.hpp"
#include "warmgraph/remote/lasting_counts.hpp"

namespace warmgraph::tool {

namespace {

using remote::RemoteTier;

/// Copies one remote's objects.
class Puller {
public:
    /// `trust`: the folder's. `tier`: a layer of `store`.
    Puller(store::LocalStore& store, RemoteTier& tier, const cachefmt::Trust& trust, RemoteTransfer& transfer)
        : m_store(store),
          m_tier(tier),
          m_trust(trust),
          m_view(m_tier, {.trust = m_tier.options().trust}),
          m_transfer(transfer),
          m_profiles(store.tier(), [&store](const store::ArtifactName& name) { return store.try_artifact_lock(name); })
    {
        if (auto refused = store.marks(tier.mark(), store::RemoteMark::refused))
            m_refused = {refused->begin(), refused->end()};
    }

    void pull(const std::vector<store::Name>& names, const bundle::Progress& progress)
    {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (auto done = take(names[i]); !done) m_transfer.add_failure(done.error());
            if (const std::string why = m_tier.counts().why_not_asked; !why.empty()) {
                m_transfer.add_failure("not_asked", "the remote failed before: " + why, names.size() - i - 1);
                break;
            }
            if (progress) progress(i + 1, names.size());
        }
        m_transfer.bytes = m_tier.counts().bytes_read;
    }

private:
    Result<void> take(const store::Name& name)
    {
        m_before = m_tier.counts().errors;
        const auto* const key = std::get_if<store::EntryKey>(&name);
        const auto* const artifact = std::get_if<store::ArtifactName>(&name);
        auto done = key != nullptr                                    ? take_entry(*key)
                    : artifact == nullptr                             ? Result<void>{}
                    : artifact->kind == store::ArtifactKind::profiles ? join_profile(*artifact)
                                                                      : take_artifact(*artifact);
        if (!done) return std::unexpected(Error{done.error().code, named(name, done.error().message)});
        // The remote gave it damaged before, and has a good one now.
        if (const std::string text = to_text(name); m_refused.contains(text))
            static_cast<void>(m_store.clear_mark(m_tier.mark(), store::RemoteMark::refused, text));
        return {};
    }

    static std::string named(const store::Name& name, const std::string& message)
    {
        return message.contains(to_text(name)) ? message : fmt::format("{}: {}", to_text(name), message);
    }

    bool is_here(const store::Name& name)
    {
        const auto found = m_store.tier().get(name, {0, false});
        return found && *found;
    }

    /// Puts the images first, so that a process that finds the entry also finds them.
    Result<void> take_entry(const store::EntryKey& key)
    {
        if (is_here(key)) {
            const auto entry = m_store.entry(key, store::ReadPurpose::preload); // from the remote if it is damaged here
            if (!entry) return std::unexpected(entry.error());
            if (!*entry) return why_nothing();
            if (auto done = take_images((**entry).graph); !done) return done;
            ++m_transfer.there;
            return {};
        }
        const auto header = m_view.header(key); // before the payload is read
        if (!header) return std::unexpected(header.error());
        if (!*header) return why_nothing();
        if ((**header).kind != cachefmt::EntryKind::graph) return {}; // a refusal holds on the other machine alone
        const auto bytes = whole(key);
        if (!bytes) return std::unexpected(bytes.error());
        const auto entry = cachefmt::decode(*bytes, key, {}, m_tier.options().trust);
        if (!entry) {
            m_tier.refuse(key, {}, entry.error());
            return std::unexpected(entry.error());
        }
        if (auto done = take_images(entry->graph); !done) return done;
        return put(key, *bytes);
    }

    /// The store copies from the remote the images that the folder does not have.
    Result<void> take_images(const cachefmt::Graph& graph)
    {
        for (const Digest& digest : cachefmt::blobs_of(graph)) {
            const store::ImageName name{digest};
            const bool was_here = is_here(name);
            const auto image = m_store.image(digest);
            if (!image) return std::unexpected(image.error());
            if (!*image) return why_nothing("image " + short_hex(digest));
            if (!was_here) m_store.wait_for_copies();
            if (!was_here && !is_here(name))
                return fail(ErrorCode::io_failed, "image {} cannot be written into the folder", short_hex(digest));
            if (m_images.insert(digest).second) ++(was_here ? m_transfer.there : m_transfer.moved);
        }
        return {};
    }

    Result<void> take_artifact(const store::ArtifactName& name)
    {
        if (is_here(name)) {
            ++m_transfer.there;
            return {};
        }
        const auto bytes = whole(name);
        if (!bytes) return std::unexpected(bytes.error());
        if (auto usable = check(name, *bytes); !usable) {
            m_tier.refuse(name, {}, usable.error());
            return usable;
        }
        return put(name, *bytes);
    }

    /// Verifies an artifact like its user does.
    Result<void> check(const store::ArtifactName& name, ByteView bytes) const
    {
        if (auto good = bundle::verify_artifact(name, bytes); !good) return good;
        const bundle::KindReader& reader = bundle::reader_of(name.kind);
        if (reader.sealed == nullptr || (!m_trust.require && !store::needs_signed_bundle(name.kind))) return {};
        const auto sealed = cachefmt::open_sealed(*reader.sealed, bytes);
        if (!sealed) return std::unexpected(sealed.error());
        return cachefmt::check_signature(*reader.sealed, *sealed, m_trust);
    }

    Result<void> join_profile(const store::ArtifactName& name)
    {
        constexpr int k_tries = 10;
        constexpr std::chrono::milliseconds k_when_busy{20};
        const auto bytes = whole(name);
        if (!bytes) return std::unexpected(bytes.error());
        const auto theirs = profile::decode(*bytes);
        if (auto good = bundle::verify_artifact(name, *bytes); !good || !theirs) {
            m_tier.refuse(name, {}, good ? theirs.error() : good.error());
            return good ? std::unexpected(theirs.error()) : good;
        }
        const auto here = m_profiles.find(theirs->key);
        if (!here) return std::unexpected(here.error()); // it stays, because a user may have edited it
        if (*here) {
            const auto both = profile::join(**here, *theirs);
            if (both && *both == **here) {
                ++m_transfer.there;
                return {};
            }
        }
        for (int again = 0; again < k_tries; ++again) {
            const auto merged = m_profiles.merge(*theirs);
            if (!merged) return std::unexpected(merged.error());
            if (*merged) {
                ++m_transfer.moved;
                return {};
            }
            system_clock().sleep_for(k_when_busy);
        }
        return fail(ErrorCode::io_failed, "another process is writing the profile in the folder: pull it again later");
    }

    Result<Bytes> whole(const store::Name& name)
    {
        auto found = m_tier.get(name, {store::row_of(store::kind_of(name)).most_bytes});
        if (!found) return std::unexpected(found.error());
        if (!*found || !(*found)->bytes) return std::unexpected(why_nothing().error());
        return std::move(*(*found)->bytes);
    }

    Result<void> put(const store::Name& name, ByteView bytes)
    {
        if (auto done = m_store.tier().put(name, bytes, store::PutMode::create_only); !done) return done;
        ++m_transfer.moved;
        return {};
    }

    /// Says why the remote gave nothing. Its reads fail silently, and count the reason.
    [[nodiscard]] Result<void> why_nothing(const std::string& what = "it") const
    {
        const remote::Counts now = m_tier.counts();
        if (!now.why_not_asked.empty()) return fail(ErrorCode::io_failed, "{}", now.why_not_asked);
        const auto rose = [&](ErrorCode code) {
            const std::string word{to_string(code)};
            const auto is = now.errors.find(word), was = m_before.find(word);
            return is != now.errors.end() && is->second > (was == m_before.end() ? 0 : was->second);
        };
        if (rose(ErrorCode::untrusted))
            return fail(ErrorCode::untrusted,
                        "{} has no accepted signature: set WARMGRAPH_ACCEPT_KEYS_FILE, or allow-unsigned in the URL",
                        what);
        if (rose(ErrorCode::corrupt))
            return fail(ErrorCode::corrupt, "{} is damaged in the remote: remove it there, and push it again", what);
        for (const auto code : {ErrorCode::stale, ErrorCode::unsupported, ErrorCode::io_failed})
            if (rose(code)) return fail(code, "the remote does not give {}", what);
        return fail(ErrorCode::not_found, "{} is not in the remote", what);
    }

    store::LocalStore& m_store;
    RemoteTier& m_tier;
    const cachefmt::Trust& m_trust;
    store::Store m_view; ///< the remote alone
    RemoteTransfer& m_transfer;
    profile::ProfileLibrary m_profiles;
    std::set<Digest> m_images;
    std::set<std::string> m_refused;
    std::map<std::string, std::uint64_t> m_before{}; ///< the counts of errors before this object
};

/// The names to pull: entries of the model, and without one artifacts too. A kind that cannot be listed is a failure.
std::vector<store::Name> names_of(RemoteTier& tier, const std::optional<std::string>& model, RemoteTransfer& transfer)
{
    std::vector<store::Name> wanted;
    std::vector<store::ArtifactKind> kinds{store::ArtifactKind::entries};
    if (!model) std::ranges::copy(store::kinds_with_files(), std::back_inserter(kinds));
    for (const store::ArtifactKind kind : kinds) {
        auto names = tier.list({kind});
        if (!names) {
            transfer.add_failure(names.error());
            break;
        }
        std::ranges::copy_if(*names, std::back_inserter(wanted), [&](const store::Name& name) {
            const auto* const key = std::get_if<store::EntryKey>(&name);
            return key == nullptr || !model || is_model(key->function.model_info, *model);
        });
    }
    return wanted;
}

/// The remote as a layer of the folder. An object that was refused before is tried again.
std::shared_ptr<RemoteTier> add_remote(store::LocalStore& store, std::unique_ptr<store::Tier> backend,
                                       remote::RemoteOptions options)
{
    options.note_refused = [&store, mark = options.mark](const std::string& name, bool is_refused) {
        static_cast<void>(is_refused ? store.set_mark(mark, store::RemoteMark::refused, name)
                                     : store.clear_mark(mark, store::RemoteMark::refused, name));
    };
    const cachefmt::Trust trust = options.trust;
    auto tier = std::make_shared<RemoteTier>(std::move(backend), std::move(options));
    store.add_layer(tier, trust);
    return tier;
}

/// Returns whether the remote has the model.
bool pull_from(const Context& context, store::LocalStore& store, remote::Settings settings,
               const std::optional<std::string>& model, const cachefmt::Trust& trust, RemoteTransfer& transfer)
{
    const auto begin = context.clock.steady();
    settings.read_only = true; // so that no folder is made
    auto backend = remote::backend_of(settings);
    if (!backend) {
        transfer.add_failure(backend.error());
        return false;
    }
    const auto tier = add_remote(store, std::move(*backend), remote::options_of(settings, trust));
    const remote::LastingCounts counts(store, {tier});
    const auto names = names_of(*tier, model, transfer);
    Puller(store, *tier, trust, transfer)
        .pull(names, progress_line(context, fmt::format("{}: looked at", settings.label)));
    store.make_room();
    transfer.seconds = std::chrono::duration<double>(context.clock.steady() - begin).count();
    return !names.empty();
}

} // namespace

Result<int> pull(const Context& context, const PullOptions& options)
{
    const auto remotes = remotes_of(options.remotes);
    if (!remotes) return std::unexpected(remotes.error());
    const auto trust = trust_of({});
    if (!trust) return std::unexpected(trust.error());
    std::vector<RemoteTransfer> transfers;
    bool has_any = false;
    for (const remote::Settings& settings : *remotes) {
        const auto store = open_store_to_fill(context, *trust); // anew, so that it has this remote alone
        if (!store) return std::unexpected(store.error());
        RemoteTransfer& transfer = transfers.emplace_back(RemoteTransfer{.label = settings.label});
        has_any = pull_from(context, **store, settings, options.model, *trust, transfer) || has_any;
    }
    const bool has_failed = std::ranges::any_of(transfers, [](const auto& one) { return !one.failed.empty(); });
    if (options.model && !has_any && !has_failed)
        return fail(ErrorCode::not_found, "no remote has entries of a model '{}'", *options.model);
    return report_transfers(context, transfers, "fetched", "fetched");
}

} // namespace warmgraph::tool
