// The table of subcommands. A new one is a row here, a declaration in commands.hpp and a file in verbs/.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "commands.hpp"
#include "line/command_line.hpp"
#include "line/completion.hpp"
#include "line/manual.hpp"
#include "line/suggestion.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/readable.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::tool {

namespace {

const std::vector<std::string> k_sections{"header", "guards", "bindings", "images", "nodes"};

std::optional<std::string> given(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }

/// Refuses an empty name (e.g. from an unset script variable), which would choose everything.
std::string check_given(const std::string& name)
{
    return name.empty() ? "the name is empty: leave the option out to mean all" : "";
}

std::string check_file(const std::string& name)
{
    return name.empty() ? "the name is empty: leave the option out" : "";
}

CLI::Option* file_option(CLI::App& app, const char* name, std::string& value, const char* what)
{
    return app.add_option(name, value, what)->type_name(k_file)->check(check_file, "", "");
}

std::vector<std::string> comma_separated(const std::string& text)
{
    std::vector<std::string> words;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        words.push_back(text.substr(start, end - start));
        start = end + 1;
    }
    return words;
}

std::string check_sections(const std::string& text)
{
    for (const std::string& word : comma_separated(text))
        if (!cachefmt::section_of(word))
            return fmt::format("'{}' is not a section: give {}, with commas between them{}", printable(word, 80),
                               fmt::join(k_sections, ", "), did_you_mean(word, k_sections));
    return {};
}

cachefmt::Sections sections_of(const std::string& text)
{
    cachefmt::Sections sections;
    if (text.empty()) return sections;
    for (const std::string& word : comma_separated(text))
        if (const auto section = cachefmt::section_of(word)) sections.insert(*section);
    return sections;
}

std::string check_digits(const std::string& text)
{
    const bool is_hex =
        !text.empty() && text.size() <= 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_hex ? ""
                  : fmt::format("'{}' does not begin a variant's digest, expected hex digits such as 3f9a",
                                printable(text, 80));
}

void optional_name(CLI::App& app, Arguments& arguments)
{
    app.add_option("name", arguments.target, "a model, model/function or model/rank/function (default: all)")
        ->type_name(k_name)
        ->option_text("(optional)")
        ->check(check_given, "", "");
}

void required_function(CLI::App& app, Arguments& arguments, const char* what)
{
    app.add_option("function", arguments.target, what)->type_name(k_function)->option_text("(required)")->required();
}

/// Adds an option for the word of a kind with this use, or for one of `others`.
void kind_option(CLI::App& app, std::string& value, const char* what, store::KindUse use,
                 const std::vector<std::string>& others = {})
{
    auto words = store::words_for(use);
    words.insert(words.end(), others.begin(), others.end());
    app.add_option("--kind", value, what)
        ->type_name(fmt::format("{}", fmt::join(words, "|")))
        ->check(
            [words, use, others](const std::string& given) {
                if (std::ranges::find(others, given) != others.end()) return std::string();
                const auto kind = store::parse_kind("the line", given, use, others);
                return kind ? std::string() : kind.error().message + did_you_mean(given, words);
            },
            "", "");
}

// --- The rows

Verb ls_verb()
{
    return {"ls",
            "list the cached functions",
            {"warmgraph ls", "warmgraph ls tiny-llama --json"},
            optional_name,
            [](const Context& c, const Arguments& a) { return ls(c, given(a.target)); }};
}

void show_options(CLI::App& app, Arguments& arguments)
{
    required_function(app, arguments, "model/function, model/rank/function, or the path of a .wg file");
    app.add_option("--only", arguments.only, "only these sections, separated by commas")
        ->type_name(fmt::format("{}", fmt::join(k_sections, "|")))
        ->check(check_sections, "", "");
    app.add_option("--variant", arguments.variant, "only the variant whose digest begins with these digits")
        ->type_name("DIGITS")
        ->check(check_digits, "", "");
    app.add_flag("--dot", arguments.dot, "a drawing of the graph for Graphviz");
}

Verb show_verb()
{
    return {"show",
            "show a function's entries: guards, bindings, images, nodes",
            {"warmgraph show tiny-llama/decode", "warmgraph show tiny-llama/decode --only guards,nodes --variant 3f9a",
             "warmgraph show tiny-llama/decode --dot | dot -Tsvg > decode.svg"},
            show_options,
            [](const Context& c, const Arguments& a) {
                return show(c, a.target, {a.dot ? ShowForm::dot : ShowForm::text, sections_of(a.only), a.variant});
            }};
}

void explain_options(CLI::App& app, Arguments& arguments)
{
    required_function(app, arguments, "model/function or model/rank/function; a program's name with --kind compiled");
    kind_option(app, arguments.explained, "what missed: an entry (the default), or a compiled program",
                store::KindUse::explained);
    app.add_flag("--all", arguments.all, "the last 16 misses, not only the last one");
    app.add_flag("--accept-newer-driver", arguments.accept_newer_driver,
                 "compare as CacheOptions::accept_newer_driver does");
}

Verb explain_verb()
{
    return {"explain",
            "say why a function missed, and whether it would miss in this process",
            {"warmgraph explain tiny-llama/decode", "warmgraph explain tiny-llama/decode --all",
             "warmgraph explain llm --kind compiled"},
            explain_options,
            [](const Context& c, const Arguments& a) {
                if (a.explained == "compiled") return explain_program(c, a.target);
                using guards::VersionRule;
                const guards::Relaxation relaxation{a.accept_newer_driver ? VersionRule::same_or_newer
                                                                          : VersionRule::exact};
                return explain(c, a.target, {relaxation, a.all});
            }};
}

void check_options(CLI::App& app, Arguments& arguments)
{
    app.add_option("what", arguments.files,
                   "a model, model/function or model/rank/function, and bundles: FILE.wgb, ./FILE or - (default: the "
                   "cache folder)")
        ->type_name(k_name)
        ->option_text("(optional)")
        ->check(check_given, "", "");
    app.add_flag("--repair", arguments.repair, "move what is damaged to quarantine");
    file_option(app, "--accept-file", arguments.accept_file,
                "keys, one a line: every file that can be signed must be signed with one of them");
}

Verb check_verb()
{
    return {"check",
            "read everything, and report damage and signatures; changes nothing by itself",
            {"warmgraph check", "warmgraph check tiny-llama/decode", "warmgraph check --repair",
             "warmgraph check --accept-file release.key.pub", "warmgraph check cache.wgb"},
            check_options,
            [](const Context& c, const Arguments& a) {
                const RepairMode mending = a.repair ? RepairMode::repair : RepairMode::look_only;
                return check(c, {a.files, mending, a.accept_file});
            }};
}

Verb stats_verb()
{
    return {"stats",
            "hits, misses and why, time saved",
            {"warmgraph stats", "warmgraph stats tiny-llama --json", "warmgraph stats --prometheus"},
            [](CLI::App& app, Arguments& arguments) {
                optional_name(app, arguments);
                app.add_flag("--prometheus", arguments.prometheus, "Prometheus' text format");
            },
            [](const Context& c, const Arguments& a) {
                return stats(c, given(a.target), a.prometheus ? StatsForm::prometheus : StatsForm::as_context);
            }};
}

Verb profile_verb()
{
    return {"profile",
            "sizes of the functions' calls, and the sizes that they were padded to",
            {"warmgraph profile", "warmgraph profile tiny-llama/prompt --json"},
            [](CLI::App& app, Arguments& arguments) {
                app.add_option("name", arguments.target, "a model or model/function (default: all)")
                    ->type_name(k_name)
                    ->option_text("(optional)")
                    ->check(check_given, "", "");
            },
            [](const Context& c, const Arguments& a) { return profile(c, given(a.target)); }};
}

Verb report_verb()
{
    return {"report",
            "one HTML page: what is cached, hits and misses, start-up times, graphs",
            {"warmgraph report", "warmgraph report -o cache.html", "warmgraph report --json"},
            [](CLI::App& app, Arguments& arguments) {
                file_option(app, "-o", arguments.file,
                            "the page's file; default: warmgraph-report.html, and none where --json is given");
            },
            [](const Context& c, const Arguments& a) { return report(c, given(a.file)); }};
}

void clear_options(CLI::App& app, Arguments& arguments)
{
    app.add_option("--model", arguments.model, "only this model")->type_name("MODEL")->check(check_given, "", "");
    app.add_option("--func", arguments.function, "only this function: function, model/function or model/rank/function")
        ->type_name(k_function)
        ->check(check_given, "", "");
    kind_option(app, arguments.kind, "what to remove; images: only unused ones", store::KindUse::cleared,
                {"quarantine", "all"});
    app.add_flag("--dry-run", arguments.dry_run, "say what would be removed, and remove nothing");
    app.add_flag("--yes", arguments.yes, "do not ask before everything is removed");
}

Verb clear_verb()
{
    return {"clear",
            "remove entries",
            {"warmgraph clear --func tiny-llama/decode", "warmgraph clear --kind all --dry-run"},
            clear_options,
            [](const Context& c, const Arguments& a) {
                const Confirmation asking = a.dry_run ? Confirmation::dry_run
                                            : a.yes   ? Confirmation::never
                                                      : Confirmation::who_can_answer;
                return clear(c, {given(a.model), given(a.function), a.kind, asking});
            }};
}

std::string check_size(const std::string& text)
{
    const auto bytes = store::parse_bytes("the size", text);
    return bytes && !text.empty() ? "" : bytes ? "the size is empty" : bytes.error().message;
}

void prune_options(CLI::App& app, Arguments& arguments)
{
    app.add_option("--to", arguments.to,
                   "how much may be left, such as 2G (default: $WARMGRAPH_CACHE_BYTES, else 8 GiB)")
        ->type_name("SIZE")
        ->check(check_size, "", "");
    app.add_option("--older", arguments.older_days, "also remove everything that was not used for so many days")
        ->type_name("DAYS");
    kind_option(app, arguments.pruned, "only this kind; --to is then its size", store::KindUse::budgeted);
    app.add_flag("--dry-run", arguments.dry_run, "say what would be removed, and remove nothing");
}

Verb prune_verb()
{
    return {"prune",
            "make room: remove unused images, then the least recently used files",
            {"warmgraph prune", "warmgraph prune --to 2G --dry-run", "warmgraph prune --kind compiled --older 30"},
            prune_options,
            [](const Context& c, const Arguments& a) {
                return prune(c, {given(a.to), a.older_days, given(a.pruned), a.dry_run});
            }};
}

void key_options(CLI::App& app, Arguments& arguments)
{
    file_option(app, "--key-file", arguments.key_file, "the key to sign with (default: $WARMGRAPH_SIGN_KEY_FILE)");
    file_option(app, "--accept-file", arguments.accept_file,
                "keys that are accepted, one a line (default: $WARMGRAPH_ACCEPT_KEYS_FILE)");
}

void sign_options(CLI::App& app, Arguments& arguments)
{
    key_options(app, arguments);
    CLI::Option* const new_key =
        file_option(app, "--new-key", arguments.new_key_file, "make a key in this new file instead");
    app.add_option("--id", arguments.key_id, "its id: letters, digits, '.', '_', '-'")->type_name("ID")->needs(new_key);
    among(app.add_option("--kind", arguments.key_kind, "one shared secret (the default), or a key with a public half"),
          {"hmac-sha256", "ed25519"})
        ->needs(new_key);
}

Verb sign_verb()
{
    return {
        "sign",
        "sign every file that can be signed, or make a key",
        {"warmgraph sign --new-key release.key --id release --kind ed25519", "warmgraph sign --key-file release.key"},
        sign_options,
        [](const Context& c, const Arguments& a) {
            return a.new_key_file.empty() ? sign(c, {a.key_file, a.accept_file})
                                          : make_key(c, {a.new_key_file, a.key_id, a.key_kind});
        }};
}

void bundle_options(CLI::App& app, Arguments& arguments)
{
    among(app.add_option("action", arguments.action, "what to do"),
          {"create", "load", "ls", "show", "check", "merge", "diff", "strip"})
        ->option_text("(required)")
        ->required();
    app.add_option("files", arguments.files,
                   "the bundle (create, load, ls, show, check); merge: the new bundle, then its sources; diff: two "
                   "bundles; strip: the bundle, then the new one")
        ->type_name(k_file)
        ->check(check_file, "", "")
        ->required();
    app.add_option("--model", arguments.model, "only this model")->type_name("MODEL")->check(check_given, "", "");
    app.add_option("--func", arguments.function, "only this function: function, model/function or model/rank/function")
        ->type_name(k_function)
        ->check(check_given, "", "");
    app.add_option("--kind", arguments.kinds,
                   "only these kinds, separated by commas: entries include images and constants; create leaves torch "
                   "out unless it is named, and needs a key to sign it with")
        ->type_name(fmt::format("{}", fmt::join(store::words_for(store::KindUse::bundled), "|")))
        ->check(check_given, "", "");
    app.add_option("--arch", arguments.architectures, "strip: the architectures to keep, separated by commas")
        ->type_name("ARCH")
        ->check(check_given, "", "");
    app.add_flag("--accept-newer-driver", arguments.accept_newer_driver,
                 "check, load: compare as CacheOptions::accept_newer_driver does");
    key_options(app, arguments);
}

Verb bundle_verb()
{
    return {"bundle",
            "one file that carries a cache: create, inspect, load it",
            {"warmgraph bundle create cache.wgb --model tiny-llama", "warmgraph bundle check cache.wgb",
             "warmgraph bundle load cache.wgb", "warmgraph bundle strip cache.wgb small.wgb --arch sm_90"},
            bundle_options,
            [](const Context& c, const Arguments& a) {
                using guards::VersionRule;
                BundleOptions options{
                    a.action, a.files, given(a.model), given(a.function), {a.key_file, a.accept_file}};
                if (a.accept_newer_driver) options.relaxation.driver = VersionRule::same_or_newer;
                if (!a.architectures.empty()) options.architectures = comma_separated(a.architectures);
                if (!a.kinds.empty()) options.kinds = comma_separated(a.kinds);
                return bundle(c, options);
            }};
}

void precompile_options(CLI::App& app, Arguments& arguments)
{
    app.add_option("manifest", arguments.file, "a JSON file that lists programs (docs/precompile.md)")
        ->type_name(k_file)
        ->option_text("(required)")
        ->check(check_file, "", "")
        ->required();
    app.add_option("--arch", arguments.architectures, "CUDA architectures, separated by commas, such as sm_80,sm_90a")
        ->type_name("ARCH")
        ->check(check_given, "", "");
    key_options(app, arguments);
}

Verb precompile_verb()
{
    return {"precompile",
            "compile programs into the cache, also without a GPU",
            {"warmgraph precompile programs.json --arch sm_80,sm_90a"},
            precompile_options,
            [](const Context& c, const Arguments& a) {
                PrecompileOptions options{a.file, {}, {a.key_file, a.accept_file}};
                if (!a.architectures.empty()) options.architectures = comma_separated(a.architectures);
                return precompile(c, options);
            }};
}

void remote_options(CLI::App& app, Arguments& arguments, const char* model)
{
    app.add_option("--model", arguments.model, model)->type_name("MODEL")->check(check_given, "", "");
    app.add_option("--remote", arguments.remotes,
                   "the remote's URL; may be given several times (default: $WARMGRAPH_REMOTE)")
        ->type_name("URL")
        ->check(check_given, "", "")
        ->allow_extra_args(false);
}

Verb push_verb()
{
    return {"push",
            "send the cache to remotes",
            {"warmgraph push --remote s3://models/warmgraph --model tiny-llama --dry-run"},
            [](CLI::App& app, Arguments& arguments) {
                remote_options(app, arguments, "only entries of this model");
                app.add_flag("--dry-run", arguments.dry_run, "say what would be sent, and send nothing");
            },
            [](const Context& c, const Arguments& a) { return push(c, {given(a.model), a.remotes, a.dry_run}); }};
}

Verb pull_verb()
{
    return {"pull",
            "copy what remotes have into the cache",
            {"warmgraph pull --remote file:///mnt/models/warmgraph --model tiny-llama"},
            [](CLI::App& app, Arguments& arguments) { remote_options(app, arguments, "only entries of this model"); },
            [](const Context& c, const Arguments& a) { return pull(c, {given(a.model), a.remotes}); }};
}

Verb doctor_verb()
{
    return {"doctor",
            "check devices, libraries, cache folder and environment; or remotes",
            {"warmgraph doctor", "warmgraph doctor --remote unix:///run/redis/redis.sock"},
            [](CLI::App& app, Arguments& arguments) {
                const CLI::Option* const remote =
                    app.add_option("--remote", arguments.remotes,
                                   "try each call of this remote instead (default: $WARMGRAPH_REMOTE)")
                        ->type_name("URL")
                        ->expected(0, 1);
                app.callback([&arguments, remote] { arguments.tries_remotes = remote->count() != 0; });
            },
            [](const Context& c, const Arguments& a) {
                if (!a.tries_remotes) return doctor(c);
                std::vector<std::string> urls = a.remotes;
                std::erase(urls, "");
                return doctor_of_remotes(c, urls);
            }};
}

// Hidden subcommands, for builds and completions.

Verb completion_verb()
{
    return {"completion",
            "print the shell's completion",
            {"warmgraph completion bash > /etc/bash_completion.d/warmgraph"},
            [](CLI::App& app, Arguments& arguments) {
                among(app.add_option("shell", arguments.shell, "the shell"), {"bash", "zsh"})->required();
            },
            [](const Context&, const Arguments& a) -> Result<int> {
                print(a.shell == "zsh" ? zsh_completion() : bash_completion());
                return k_ok;
            },
            true};
}

Verb manual_verb()
{
    return {"manual",
            "print the manual page",
            {"warmgraph manual | man -l -"},
            nullptr,
            [](const Context&, const Arguments&) -> Result<int> {
                print(manual_page());
                return k_ok;
            },
            true};
}

Verb names_verb()
{
    return {"names", "print the names that subcommands take, one a line",         {"warmgraph names"},
            nullptr, [](const Context& c, const Arguments&) { return names(c); }, true};
}

} // namespace

const std::vector<Verb>& verbs()
{
    static const std::vector<Verb> k_verbs{
        ls_verb(),     show_verb(),  explain_verb(), check_verb(),      stats_verb(),  profile_verb(),
        report_verb(), clear_verb(), prune_verb(),   sign_verb(),       bundle_verb(), precompile_verb(),
        push_verb(),   pull_verb(),  doctor_verb(),  completion_verb(), manual_verb(), names_verb()};
    return k_verbs;
}

} // namespace warmgraph::tool
