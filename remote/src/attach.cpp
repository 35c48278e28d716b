#include "warmgraph/remote/attach.hpp"

#include <exception>

#include "warmgraph/base/log.hpp"
#include "warmgraph/remote/backends.hpp"
#include "warmgraph/remote/uploads.hpp"

namespace warmgraph::remote {
namespace {

void note(store::LocalStore& store, const std::string& mark, const std::string& name, bool is_refused)
{
    const auto done = is_refused ? store.set_mark(mark, store::RemoteMark::refused, name)
                                 : store.clear_mark(mark, store::RemoteMark::refused, name);
    if (!done) log().debug("a refused object is not remembered: {}", done.error().message);
}

} // namespace

RemoteOptions options_of(const Settings& settings, const cachefmt::Trust& trust)
{
    RemoteOptions options{.label = settings.label, .mark = mark_name(settings), .stop = settings.stop};
    options.read_only = settings.read_only;
    options.max_bytes = settings.max_bytes;
    options.trust = trust;
    options.trust.require = !settings.allow_unsigned;
    return options;
}

std::shared_ptr<RemoteTier> attach(store::LocalStore& store, std::unique_ptr<store::Tier> backend,
                                   RemoteOptions options)
{
    const std::string mark = options.mark.empty() ? options.label : options.mark;
    if (const auto refused = store.marks(mark, store::RemoteMark::refused))
        options.refused = {refused->begin(), refused->end()};
    options.note_refused = [&store, mark](const std::string& name, bool is_refused) {
        note(store, mark, name, is_refused);
    };
    const cachefmt::Trust trust = options.trust;
    auto tier = std::make_shared<RemoteTier>(std::move(backend), std::move(options));
    store.add_layer(tier, trust);
    return tier;
}

std::vector<std::shared_ptr<RemoteTier>> attach(store::LocalStore& store, const std::vector<Settings>& settings,
                                                const cachefmt::Trust& trust)
{
    std::vector<std::shared_ptr<RemoteTier>> tiers;
    for (const Settings& one : settings) {
        auto backend = backend_of(one);
        if (!backend) {
            log().warn("remote {} is not used: {}", one.label, backend.error().message);
            continue;
        }
        tiers.push_back(attach(store, std::move(*backend), options_of(one, trust)));
        const bool has_key = trust.sign_with || !trust.accepted.empty();
        if (!has_key && !one.allow_unsigned)
            log().warn("remote {} gives nothing: only signed objects are used, and no key is accepted: set "
                       "WARMGRAPH_ACCEPT_KEYS_FILE, or allow-unsigned in its URL",
                       one.label);
    }
    return tiers;
}

} // namespace warmgraph::remote
