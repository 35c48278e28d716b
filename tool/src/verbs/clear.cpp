// `warmgraph clear`: removes entries, unused images and quarantine.
#include <array>
#include <cstdio>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.hpp"
#include "selection.hpp"
#include "verbs/removal.hpp"

namespace warmgraph::tool {

namespace {

using store::Removal;

Json to_json(const Removal& removal)
{
    Json json{{"quarantined", removal.quarantined.files}, {"quarantined_bytes", removal.quarantined.bytes}};
    for (const store::ArtifactKind kind : store::kinds_for(store::KindUse::cleared)) {
        json[std::string(to_string(kind))] = removal.of(kind).files;
        json[fmt::format("{}_bytes", store::row_of(kind).one)] = removal.of(kind).bytes;
    }
    return json;
}

void report(const Context& context, const ClearOptions& options, const Removal& removal)
{
    const bool dry = options.asking == Confirmation::dry_run;
    if (context.output == Output::json)
        print(Json{{"cache_dir", context.cache_dir.string()}, {dry ? "would_remove" : "removed", to_json(removal)}});
    else
        print(fmt::format("{} {}\n", dry ? "would remove" : "removed", text_of(removal)));
}

/// The party at standard input. nobody: it is /dev/null or closed, e.g. under cron and in services.
enum class InputKind : std::uint8_t { nobody, terminal, stream };

InputKind input_kind()
{
    struct stat input{};
    const bool is_seen = ::isatty(STDERR_FILENO) == 1 || ::isatty(STDOUT_FILENO) == 1;
    if (::isatty(STDIN_FILENO) == 1) return is_seen ? InputKind::terminal : InputKind::nobody;
    if (::fstat(STDIN_FILENO, &input) != 0 || S_ISCHR(input.st_mode)) return InputKind::nobody;
    return InputKind::stream;
}

/// Whether to ask: the request clears everything, and the folder is not empty.
bool is_worth_asking(const ClearOptions& options, const store::ClearRequest& request, const Removal& planned)
{
    const bool everything = !request.chooses_functions() && request.kinds.contains(store::ArtifactKind::entries);
    return options.asking == Confirmation::who_can_answer && everything && planned.files() > 0;
}

void tell(const std::string& text)
{
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

/// Asks on standard error, because standard output may be one document. A stream that ends without an answer has no
/// user behind it, so the work goes on. A silent open stream must not block a script for ever.
bool agrees(const Context& context, const Removal& planned)
{
    constexpr int k_patience_ms = 10'000;
    const InputKind input = input_kind();
    if (input == InputKind::nobody) return true;
    tell(fmt::format("Remove {} from {}? [y/N] ", text_of(planned), path_text(context.cache_dir)));
    struct pollfd ready{STDIN_FILENO, POLLIN, 0};
    if (input == InputKind::stream && ::poll(&ready, 1, k_patience_ms) == 0) {
        tell("\nno answer was given, so nothing is removed; give --yes to remove without a question\n");
        return false;
    }
    std::array<char, 64> answer{};
    // unbuffered: the input after the answer belongs to the next reader, e.g. a script.
    std::setvbuf(stdin, nullptr, _IONBF, 0);
    if (std::fgets(answer.data(), answer.size(), stdin) == nullptr) return input == InputKind::stream;
    return answer[0] == 'y' || answer[0] == 'Y';
}

/// Returns the counts that were found (dry run) or removed; nullopt when the user said no.
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
    if (options.asking == Confirmation::dry_run) return *planned;
    if (is_worth_asking(options, request, *planned) && !agrees(context, *planned)) return std::nullopt;
    return store.clear(request);
}

} // namespace

Result<int> clear(const Context& context, const ClearOptions& options)
{
    if ((options.model || options.function) && options.kind != to_string(store::ArtifactKind::entries))
        return fail(ErrorCode::invalid_argument, "--model and --func choose entries: leave them out with --kind {}",
                    options.kind);
    auto request = request_of(options.model, options.function);
    if (!request) return std::unexpected(request.error());
    if (options.kind == "all")
        *request = store::ClearRequest::everything();
    else if (options.kind == "quarantine")
        *request = {.kinds = {}, .quarantine = true};
    else if (const auto kind = store::parse_kind("--kind", options.kind, store::KindUse::cleared))
        request->kinds = {*kind};
    else
        return std::unexpected(kind.error());
    const auto store = open_store(context, options.asking == Confirmation::dry_run ? store::StoreMode::read_only
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
