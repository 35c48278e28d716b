#include "line/command_line.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "line/suggestion.hpp"
#include "warmgraph/backends/built.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::tool {

namespace {

constexpr const char* k_exit_codes =
    "Exit status:\n"
    "  0  fine\n"
    "  1  something is wrong: damage, a miss, a problem, nothing by that name; or clear was declined\n"
    "  2  the command was used wrongly\n"
    "  3  the cache folder cannot be used";

constexpr const char* k_common = "Options of every subcommand";

/// Adds the options that are accepted before and behind the subcommand, and appear in its help.
void add_common(CLI::App& app, Arguments& arguments)
{
    app.add_option("--cache-dir", arguments.cache_dir,
                   "cache folder (default: $WARMGRAPH_CACHE_DIR, else .warmgraph_cache)")
        ->type_name(k_folder)
        ->group(k_common);
    app.add_flag("--json", arguments.json, "one JSON document on standard output")->group(k_common);
    among(app.add_option("--color", arguments.color,
                         "colours: auto (a terminal, TERM is not dumb, and NO_COLOR is not set)"),
          {"auto", "always", "never"})
        ->group(k_common);
}

void add_verb(CLI::App& app, const Verb& verb, Arguments& arguments)
{
    CLI::App* const sub = app.add_subcommand(verb.name, verb.summary);
    sub->set_help_flag("-h,--help", "this help");
    if (verb.options) verb.options(*sub, arguments);
    add_common(*sub, arguments);
    if (verb.is_hidden) sub->group("");
    sub->footer(verb.examples.empty() ? ""
                                      : fmt::format("{}:\n  {}", verb.examples.size() == 1 ? "Example" : "Examples",
                                                    fmt::join(verb.examples, "\n  ")));
}

std::vector<std::string> option_names(const std::vector<const CLI::Option*>& options)
{
    std::vector<std::string> names{"--help"};
    for (const CLI::Option* option : options) names.push_back(option->get_name());
    return names;
}

std::vector<std::string> shown_names(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::App* sub : shown_subcommands(app)) names.push_back(sub->get_name());
    return names;
}

/// Returns the replacement if the word was removed from the command, else did_you_mean().
std::string meant_text(const std::string& word, const std::vector<std::string>& words)
{
    if (word == "verify") return "; `warmgraph check` verifies the cache folder and, by their files, bundles";
    return did_you_mean(word, words);
}

/// The error text for words that fit nowhere.
std::string unexpected_text(const CLI::App& app, const CLI::App* sub)
{
    const auto words = app.remaining(true);
    const std::string word = words.empty() ? "" : printable(words.front(), 80);
    const bool is_option = word.starts_with("-");
    if (is_option)
        return fmt::format("there is no option '{}'{}", word,
                           did_you_mean(word, option_names(named_options(sub != nullptr ? *sub : app))));
    if (sub == nullptr) return fmt::format("there is no subcommand '{}'{}", word, meant_text(word, shown_names(app)));
    return fmt::format("'{}' is one argument too many", word);
}

} // namespace

std::vector<std::string> choices_of(const std::string& type_name)
{
    std::vector<std::string> words;
    if (type_name.find('|') == std::string::npos) return words;
    for (std::size_t start = 0; start <= type_name.size();) {
        const std::size_t end = std::min(type_name.find('|', start), type_name.size());
        words.push_back(type_name.substr(start, end - start));
        start = end + 1;
    }
    return words;
}

CLI::Option* among(CLI::Option* option, const std::vector<std::string>& words)
{
    return option->type_name(fmt::format("{}", fmt::join(words, "|")))
        ->check(
            [words](const std::string& given) {
                if (std::ranges::find(words, given) != words.end()) return std::string();
                return fmt::format("'{}' is not one of {}{}", printable(given, 80), fmt::join(words, ", "),
                                   meant_text(given, words));
            },
            "", "");
}

std::unique_ptr<CLI::App> make_app(Arguments& arguments)
{
    auto app = std::make_unique<CLI::App>("warmgraph: a cache of captured execution", "warmgraph");
    app->set_help_flag("-h,--help", "this help");
    app->get_formatter()->column_width(34);
    add_common(*app, arguments);
    app->set_version_flag("--version",
                          fmt::format("warmgraph {} ({})", WARMGRAPH_VERSION, backends::built_backend_names()),
                          "the version, and the backends that this build has");
    app->footer(
        fmt::format("Examples:\n  warmgraph ls\n  warmgraph show tiny-llama/decode --only guards\n"
                    "  warmgraph explain tiny-llama/decode\nwarmgraph <subcommand> --help names its options.\n\n{}",
                    k_exit_codes));
    app->require_subcommand(0, 1); // so that the error names an unknown word
    for (const Verb& verb : verbs()) add_verb(*app, verb, arguments);
    return app;
}

std::vector<const CLI::App*> shown_subcommands(const CLI::App& app)
{
    return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::vector<const CLI::Option*> named_options(const CLI::App& app)
{
    auto options = app.get_options([&](const CLI::Option* option) {
        return !option->get_positional() && option != app.get_help_ptr() && option->get_name() != "--version";
    });
    std::ranges::stable_partition(options, [](const CLI::Option* option) { return option->get_group() != k_common; });
    return options;
}

std::vector<const CLI::Option*> positionals(const CLI::App& app)
{
    return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string usage_text(const CLI::App& app, const CLI::ParseError& error)
{
    const auto chosen = app.get_subcommands();
    const CLI::App* const sub = chosen.empty() ? nullptr : chosen.front();
    const bool is_extra = app.remaining_size(true) > 0; // an extra word explains the error better than a missing word
    const std::string command = sub != nullptr ? "warmgraph " + sub->get_name() : "warmgraph";
    const std::string what = is_extra ? unexpected_text(app, sub) : printable(error.what(), 400);
    const std::string there_are =
        is_extra && sub == nullptr ? fmt::format("there are: {}\n", fmt::join(shown_names(app), ", ")) : "";
    return fmt::format("{}: {}\n{}`{} --help` says more\n", command, what, there_are, command);
}

} // namespace warmgraph::tool
