// The command line: what subcommands there are, their options, their help. Completions and the manual page are made from
// the same table.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "context.hpp"

namespace warmgraph::tool {

/// What may be given, of all subcommands together.
struct Arguments {
    std::string cache_dir, target, model, function;
    std::string kind = "entries", explained = "entries", color = "auto", variant, only, shell, file;
    std::string key_file, accept_file, new_key_file, key_id, key_kind = "hmac-sha256";
    bool json = false, dot = false, repair = false, accept_newer_driver = false, dry_run = false, yes = false;
    bool all = false, prometheus = false;
    std::string to;
    std::optional<std::uint32_t> older_days;
    std::string pruned; ///< the kind
    std::string action, architectures, kinds;
    std::vector<std::string> files;
};

/// A subcommand: a row in the table.
struct Verb {
    std::string name;
    std::string summary;
    std::vector<std::string> examples; ///< whole lines: "warmgraph ls tiny-llama"
    std::function<void(CLI::App&, Arguments&)> options;
    std::function<Result<int>(const Context&, const Arguments&)> run;
    bool is_hidden = false; ///< for scripts and builds: in no help
};

/// The table (verbs.cpp), in the order of the help.
[[nodiscard]] const std::vector<Verb>& verbs();

/// What completions and the manual know of a value from its name in the help: "FOLDER", "FILE", "FUNCTION" (a
/// model/function of the cache), "NAME" (that, or a model), or words to choose from, "a|b|c".
inline constexpr const char* k_folder = "FOLDER";
inline constexpr const char* k_file = "FILE";
inline constexpr const char* k_function = "FUNCTION";
inline constexpr const char* k_name = "NAME";
[[nodiscard]] std::vector<std::string> choices_of(const std::string& type_name); ///< empty where it names no words

/// The value must be one of these words; the message says which is near.
CLI::Option* among(CLI::Option* option, const std::vector<std::string>& words);

/// The parser. `arguments` must outlive it.
[[nodiscard]] std::unique_ptr<CLI::App> make_app(Arguments& arguments);

/// Subcommands that are not hidden.
[[nodiscard]] std::vector<const CLI::App*> shown_subcommands(const CLI::App& app);
/// Its named options without --help, those of every subcommand last.
[[nodiscard]] std::vector<const CLI::Option*> named_options(const CLI::App& app);
/// Its positional arguments.
[[nodiscard]] std::vector<const CLI::Option*> positionals(const CLI::App& app);

/// What is wrong with the line, with the word that was probably meant.
[[nodiscard]] std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

} // namespace warmgraph::tool
