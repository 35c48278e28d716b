// `warmgraph push`: sends the folder's objects to remotes.
#include <algorithm>
#include <set>

#include "commands.hpp"
#include "selection.hpp"
#include "verbs/bundle/actions.hpp"
#include "verbs/remote/transfers.hpp"
#include "warmgraph/cachefmt/image_use.hpp"
#include "warmgraph/remote/attach.hpp"
#include "warmgraph/remote/backends.hpp"
#include "warmgraph/remote/lasting_counts.hpp"
#include "warmgraph/remote/uploads.hpp"

namespace warmgraph::tool {

namespace {

/// The intact objects to send, images before the entries that need them, and the damaged ones.
struct Plan {
    std::vector<store::Name> objects{};
    std::set<store::EntryKey> signed_entries{}; ///< with a signature that is accepted here
    std::vector<Error> damaged{};
    bool is_all = true; ///< no model was chosen
};

/// Reads everything, so that no damaged object is spread.
class Planner {
public:
    explicit Planner(store::LocalStore& store) : m_store(store) {}

    Result<void> add(const cachefmt::FunctionKey& function)
    {
        const auto variants = m_store.variants(function);
        if (!variants) return std::unexpected(variants.error());
        for (const store::Variant& variant : *variants) {
            const store::EntryKey key{function, variant.guards_digest};
            auto added = variant.header ? add(key, *variant.header) : std::unexpected(variant.header.error());
            if (!added) m_plan.damaged.push_back({added.error().code, named(key, added.error())});
        }
        return {};
    }

    Result<void> add_artifacts()
    {
        const auto names = bundle::artifacts_of(m_store.tier(), [](store::ArtifactKind) { return true; });
        if (!names) return std::unexpected(names.error());
        for (const store::ArtifactName& name : *names) {
            const auto bytes = m_store.object(name);
            if (bytes && !*bytes) continue; // it was removed meanwhile
            const auto whole = bytes ? bundle::verify_artifact(name, **bytes) : std::unexpected(bytes.error());
            if (whole)
                m_plan.objects.emplace_back(name);
            else
                m_plan.damaged.push_back({whole.error().code, named(name, whole.error())});
        }
        return {};
    }

    Plan take() { return std::move(m_plan); }

private:
    static std::string named(const store::Name& name, const Error& error)
    {
        return error.message.contains(to_text(name)) ? error.message
                                                     : fmt::format("{}: {}", to_text(name), error.message);
    }

    Result<void> add(const store::EntryKey& key, const cachefmt::EntryHeader& header)
    {
        if (header.kind != cachefmt::EntryKind::graph) return {}; // a refusal holds on this machine alone
        const auto entry = m_store.entry(key, store::ReadPurpose::preload);
        if (!entry) return std::unexpected(entry.error());
        if (!*entry) return {};
        for (const Digest& digest : cachefmt::blobs_of((**entry).graph)) {
            if (m_images.contains(digest)) continue;
            const auto image = m_store.image(digest);
            if (!image) return std::unexpected(image.error());
            if (!*image) return fail(ErrorCode::not_found, "image {} is missing or damaged", short_hex(digest));
            m_images.insert(digest);
            m_plan.objects.emplace_back(store::ImageName{digest});
        }
        m_plan.objects.emplace_back(key);
        if (!header.signed_by.empty()) m_plan.signed_entries.insert(key);
        return {};
    }

    store::LocalStore& m_store;
    std::set<Digest> m_images;
    Plan m_plan;
};

Result<Plan> plan_of(const Context& context, store::LocalStore& store, const std::optional<std::string>& model)
{
    const auto functions = choose(context, &store, model);
    if (!functions) return std::unexpected(functions.error());
    Planner planner(store);
    for (const cachefmt::FunctionKey& function : *functions)
        if (auto added = planner.add(function); !added) return std::unexpected(added.error());
    if (!model)
        if (auto added = planner.add_artifacts(); !added) return std::unexpected(added.error());
    Plan plan = planner.take();
    plan.is_all = !model;
    return plan;
}

/// Sends one folder to one remote.
class Pusher {
public:
    Pusher(store::LocalStore& store, std::shared_ptr<remote::RemoteTier> tier, const Plan& plan, bool is_dry_run)
        : m_store(store),
          m_plan(plan),
          m_tier(std::move(tier)),
          m_view(*m_tier, {.trust = m_tier->options().trust}),
          m_is_dry_run(is_dry_run)
    {
        if (auto unsent = m_store.marks(m_tier->mark(), store::RemoteMark::unsent))
            m_unsent = {unsent->begin(), unsent->end()};
    }

    void send_all(RemoteTransfer& transfer, const bundle::Progress& progress)
    {
        const std::size_t total = m_plan.objects.size();
        for (std::size_t i = 0; i < total; ++i) {
            send(m_plan.objects[i], transfer);
            if (const std::string why = m_tier->counts().why_not_asked; !why.empty()) {
                transfer.add_failure("not_asked", "the remote failed before: " + why, total - i - 1);
                break;
            }
            if (progress) progress(i + 1, total);
        }
        if (!m_is_dry_run) transfer.bytes = m_tier->counts().bytes_written;
        if (m_plan.is_all) forget_removed();
    }

private:
    void send(const store::Name& name, RemoteTransfer& transfer)
    {
        const std::string text = to_text(name);
        const bool is_unsent = m_unsent.contains(text);
        if (is_there(name, is_unsent)) {
            ++transfer.there;
            return forget(text);
        }
        if (m_is_dry_run) {
            note_sent(name, transfer);
            transfer.bytes += size_here(name);
            return;
        }
        const auto sent = remote::send(m_store, *m_tier, name);
        if (!sent) transfer.add_failure(sent.error());
        if (sent && *sent) note_sent(name, transfer);
        // An object that the remote never takes is not tried by each later process again.
        if (sent || sent.error().code == ErrorCode::unsupported) forget(text);
    }

    /// Whether the remote needs nothing. A profile is joined with the remote's in any case. An object that this folder
    /// changed and did not send replaces the remote's. A signed entry replaces one without an accepted signature.
    bool is_there(const store::Name& name, bool is_unsent)
    {
        const bool is_image = std::holds_alternative<store::ImageName>(name);
        if (store::kind_of(name) == store::ArtifactKind::profiles || (is_unsent && !is_image)) return false;
        const auto* const key = std::get_if<store::EntryKey>(&name);
        if (key != nullptr && m_plan.signed_entries.contains(*key)) {
            const auto header = m_view.header(*key);
            return header && *header;
        }
        const auto found = m_tier->get(name, {0, false});
        return found && *found;
    }

    void note_sent(const store::Name& name, RemoteTransfer& transfer) const
    {
        ++transfer.moved;
        const auto* const key = std::get_if<store::EntryKey>(&name);
        if (key != nullptr && m_tier->options().trust.require && !m_plan.signed_entries.contains(*key))
            ++transfer.unsigned_entries;
    }

    std::uint64_t size_here(const store::Name& name)
    {
        const auto found = m_store.tier().get(name, {0, false});
        return found && *found ? (*found)->stamp.size : 0;
    }

    void forget(const std::string& text)
    {
        if (m_is_dry_run || m_unsent.erase(text) == 0) return;
        static_cast<void>(m_store.clear_mark(m_tier->mark(), store::RemoteMark::unsent, text));
    }

    /// Drops the marks of objects that the folder lost before they were sent.
    void forget_removed()
    {
        for (const std::string& text : std::set(m_unsent)) {
            const auto name = store::name_from_text(text);
            const auto found = name ? m_store.tier().get(*name, {0, false}) : std::nullopt;
            if (found && !*found) forget(text);
        }
    }

    store::LocalStore& m_store;
    const Plan& m_plan;
    std::shared_ptr<remote::RemoteTier> m_tier;
    store::Store m_view; ///< the remote alone, as a reader with this environment sees it
    bool m_is_dry_run;
    std::set<std::string> m_unsent;
};

RemoteTransfer push_to(const Context& context, store::LocalStore& store, remote::Settings settings, const Plan& plan,
                       const cachefmt::Trust& trust, bool is_dry_run)
{
    RemoteTransfer transfer{.label = settings.label};
    transfer.is_left_out = settings.read_only;
    if (transfer.is_left_out) return transfer;
    for (const Error& error : plan.damaged) transfer.add_failure(error);
    const auto begin = context.clock.steady();
    settings.read_only = is_dry_run; // so that no folder is made
    auto backend = remote::backend_of(settings);
    if (!backend) {
        if (is_dry_run && backend.error().code == ErrorCode::not_found)
            transfer.moved = plan.objects.size(); // the folder would be made
        else
            transfer.add_failure(to_string(backend.error().code), backend.error().message,
                                 std::max<std::uint64_t>(plan.objects.size(), 1));
        return transfer;
    }
    auto tier = remote::attach(store, std::move(*backend), remote::options_of(settings, trust));
    std::optional<remote::LastingCounts> counts;
    if (!is_dry_run) counts.emplace(store, std::vector{tier});
    Pusher(store, std::move(tier), plan, is_dry_run)
        .send_all(transfer, progress_line(context, fmt::format("{}: looked at", settings.label)));
    transfer.seconds = std::chrono::duration<double>(context.clock.steady() - begin).count();
    return transfer;
}

} // namespace

Result<int> push(const Context& context, const PushOptions& options)
{
    const auto remotes = remotes_of(options.remotes);
    if (!remotes) return std::unexpected(remotes.error());
    if (std::ranges::all_of(*remotes, &remote::Settings::read_only))
        return fail(ErrorCode::invalid_argument,
                    "every remote is read-only: leave `read-only` out of the URL of the one to push to");
    const auto trust = trust_of({});
    if (!trust) return std::unexpected(trust.error());
    const auto open = [&] {
        return options.is_dry_run ? open_store(context, store::StoreMode::read_only, *trust)
                                  : open_store_as_programs_do(context);
    };
    std::optional<Plan> plan;
    std::vector<RemoteTransfer> transfers;
    for (const remote::Settings& settings : *remotes) {
        const auto store = open(); // anew, so that nothing is read from the remote before
        if (!store) return std::unexpected(store.error());
        if (!*store) return fail(ErrorCode::not_found, "{}", no_folder_text(context));
        if (!plan) {
            auto made = plan_of(context, **store, options.model);
            if (!made) return std::unexpected(made.error());
            plan = std::move(*made);
        }
        transfers.push_back(push_to(context, **store, settings, *plan, *trust, options.is_dry_run));
    }
    return options.is_dry_run ? report_transfers(context, transfers, "would be sent", "would_send")
                              : report_transfers(context, transfers, "sent", "sent");
}

} // namespace warmgraph::tool
