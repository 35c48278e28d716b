// `warmgraph prune`: removes the least recently used objects.
#include "commands.hpp"
#include "verbs/removal.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::tool {

namespace {

using store::PruneResult;
using store::Removal;

Json to_json(const Removal::Amount& amount) { return {{"files", amount.files}, {"bytes", amount.bytes}}; }

Json amounts_json(const Removal& removed)
{
    Json json{{"quarantined", to_json(removed.quarantined)}};
    for (const store::ArtifactKind kind : store::kinds_for(store::KindUse::cleared))
        json[std::string(to_string(kind))] = to_json(removed.of(kind));
    return json;
}

std::string amount_text(const Removal::Amount& amount)
{
    return fmt::format("{} in {}", size_text(amount.bytes), plural(amount.files, "file"));
}

void report(const Context& context, const PruneOptions& options, const PruneResult& pruned)
{
    const Removal& removed = pruned.removed;
    if (context.output == Output::json)
        return print(Json{{"cache_dir", context.cache_dir.string()},
                          {options.is_dry_run ? "would_remove" : "removed", amounts_json(removed)},
                          {"before", to_json(pruned.before)},
                          {"after", to_json(pruned.after)},
                          {"in_use", pruned.in_use},
                          {"why_not", pruned.why_not}});
    std::string text =
        fmt::format("{} {}; {}{} {}\n", options.is_dry_run ? "would remove" : "removed", text_of(removed),
                    amount_text(pruned.after), options.kind ? fmt::format(" of '{}'", *options.kind) : "",
                    options.is_dry_run ? "would be left" : "are left");
    if (pruned.in_use > 0)
        text += fmt::format("{} {} used by a living process, and {}\n", plural(pruned.in_use, "entry"),
                            pruned.in_use == 1 ? "is" : "are", pruned.in_use == 1 ? "stays" : "stay");
    if (!pruned.why_not.empty())
        text += fmt::format("some files could not be removed: {}\n", printable(pruned.why_not));
    print(text);
}

Result<store::PruneRequest> request_of(const PruneOptions& options)
{
    store::PruneRequest request;
    if (options.to) {
        const auto bytes = store::parse_bytes("--to", *options.to);
        if (!bytes) return std::unexpected(bytes.error());
        request.bytes = *bytes;
    } else if (const auto said = store::environment_bytes(); !said) {
        return std::unexpected(said.error()); // never guess what to remove
    }
    if (options.kind) {
        const auto kind = store::parse_kind("--kind", *options.kind, store::KindUse::budgeted);
        if (!kind) return std::unexpected(kind.error());
        request.kind = *kind;
    }
    if (options.older_days) request.older = std::chrono::days(*options.older_days);
    return request;
}

} // namespace

Result<int> prune(const Context& context, const PruneOptions& options)
{
    const auto request = request_of(options);
    if (!request) return std::unexpected(request.error());
    const auto store =
        open_store(context, options.is_dry_run ? store::StoreMode::read_only : store::StoreMode::read_write);
    if (!store) return std::unexpected(store.error());
    if (!*store) {
        if (context.output == Output::json)
            report(context, options, {});
        else
            print(no_folder_text(context) + "\n");
        return k_ok;
    }
    const auto pruned = options.is_dry_run ? (*store)->plan_prune(*request) : (*store)->prune(*request);
    if (!pruned) return std::unexpected(pruned.error());
    report(context, options, *pruned);
    return pruned->why_not.empty() ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
