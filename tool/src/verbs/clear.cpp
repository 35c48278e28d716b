// `warmgraph clear`: removes entries, unused images, what is in quarantine.
#include <array>
#include <cstdio>

#include "commands.hpp"
#include "selection.hpp"
#include "verbs/removal.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::tool {

namespace {

using store::Removal;

Json to_json(const Removal& removal)
{
    return {{"entries", removal.entries.files},
            {"images", removal.images.files},
            {"quarantined", removal.quarantined.files},
            {"entry_bytes", removal.entries.bytes},
            {"image_bytes", removal.images.bytes},
            {"quarantined_bytes", removal.quarantined.bytes},
            {"tuned", removal.tuned.files},
            {"tuned_bytes", removal.tuned.bytes},
            {"compiled", removal.compiled.files},
            {"compiled_bytes", removal.compiled.bytes},
            {"profiles", removal.profiles.files},
            {"profile_bytes", removal.profiles.bytes},
            {"torch", removal.torch.files},
            {"torch_bytes", removal.torch.bytes}};
}

void report(const Context& context, const ClearOptions& options, const Removal& removal)
{
    const bool dry = options.asking == Asking::dry_run;
    if (context.output == Output::json)
        print(Json{{"cache_dir", context.cache_dir.string()}, {dry ? "would_remove" : "removed", to_json(removal)}});
    else
        print(fmt::format("{} {}\n", dry ? "would remove" : "removed", text_of(removal)));
}

/// Everything is meant, somebody can answer, and there is something to lose.
bool must_ask(const ClearOptions& options, const store::ClearRequest& request, const Removal& planned)
{
    const bool everything = !request.chooses_functions() &&
                            (request.kind == store::ClearKind::entries || request.kind == store::ClearKind::all);
    return options.asking == Asking::on_terminal && everything && planned.files() > 0 && is_interactive();
}

/// On standard error, because standard output may be one document.
bool agrees(const Context& context, const Removal& planned)
{
    const std::string question =
        fmt::format("Remove {} from {}? [y/N] ", text_of(planned), printable(context.cache_dir.string(), 400));
    std::fwrite(question.data(), 1, question.size(), stderr);
    std::fflush(stderr);
    std::array<char, 64> answer{};
    if (std::fgets(answer.data(), answer.size(), stdin) == nullptr) return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/// As many as were found, or as many as went; nullopt where somebody said no.
Result<std::optional<Removal>> carry_out(const Context& context, store::LocalStore& store, const ClearOptions& options,
                                         const store::ClearRequest& request)
{
    const auto planned = store.plan_clear(request);
    if (!planned) return std::unexpected(planned.error());
    if (request.chooses_functions() && planned->functions == 0) {
        const auto functions = store.functions();
        if (!functions) return std::unexpected(functions.error());
        return std::unexpected(fits_nothing(*functions, request));
    }
    if (options.asking == Asking::dry_run) return *planned;
    if (must_ask(options, request, *planned) && !agrees(context, *planned)) return std::nullopt;
    return store.clear(request);
}

} // namespace

Result<int> clear(const Context& context, const ClearOptions& options)
{
    if ((options.model || options.function) && options.kind != store::ClearKind::entries)
        return fail(ErrorCode::invalid_argument, "--model and --func choose entries: leave them out with --kind "
                                                 "images, quarantine, tuned, compiled, profile or "
                                                 "all");
    auto request = request_of(options.model, options.function);
    if (!request) return std::unexpected(request.error());
    request->kind = options.kind;
    const auto store = open_store(context, options.asking == Asking::dry_run ? store::StoreMode::read_only
                                                                             : store::StoreMode::read_write);
    if (!store) return std::unexpected(store.error());
    if (!*store) {
        if (request->chooses_functions())
            return fail(ErrorCode::not_found, "nothing was removed: {}", no_folder_text(context));
        if (context.output == Output::json)
            report(context, options, {});
        else
            print(no_folder_text(context) + "\n");
        return k_ok;
    }
    const auto removal = carry_out(context, **store, options, *request);
    if (!removal) return std::unexpected(removal.error());
    report(context, options, removal->value_or(Removal{}));
    return *removal ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
