// The command line: subcommands, options, help. Completions and the manual page are made from the same table.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "context.hpp"

namespace warmgraph::tool {

/// The arguments of all subcommands.
struct Arguments {
    std::string cache_dir, target, model, function;
    std::string kind = "entries", explained = "entries", color = "auto", variant, only, shell, file;
    std::string key_file, accept_file, new_key_file, key_id, key_kind = "hmac-sha256";
    bool json = false, dot = false, repair = false, accept_newer_driver = false, dry_run = false, yes = false;
    bool all = false, prometheus = false;
    std::string to;
    std::optional<std::uint32_t> older_days;
    std::string pruned; ///< the kind of object that `prune` removes
    std::string action, architectures, kinds;
    std::vector<std::string> files;
    std::vector<std::string> remotes; ///< URLs
    bool tries_remotes = false;       ///< doctor: --remote is given
};

/// A subcommand: a row in the table.
struct Verb {
    std::string name;
    std::string summary;
    std::vector<std::string> examples; ///< whole lines: "warmgraph ls tiny-llama"
    std::function<void(CLI::App&, Arguments&)> options;
    std::function<Result<int>(const Context&, const Arguments&)> run;
    bool is_hidden = false; ///< for scripts and builds; not in the help
};

/// The table (verbs.cpp), in the order of the help.
[[nodiscard]] const std::vector<Verb>& verbs();

/// The types of values. Completions and the manual use these names: "FOLDER", "FILE", "FUNCTION" (a model/function of
/// the cache), "NAME" (a model or a model/function), or a choice of words, "a|b|c".
inline constexpr const char* k_folder = "FOLDER";
inline constexpr const char* k_file = "FILE";
inline constexpr const char* k_function = "FUNCTION";
inline constexpr const char* k_name = "NAME";
[[nodiscard]] std::vector<std::string> choices_of(const std::string& type_name); ///< the words of a choice; else empty

/// Limits the value to these words. The error message suggests the nearest word.
CLI::Option* among(CLI::Option* option, const std::vector<std::string>& words);

/// Makes the parser. `arguments` must outlive it.
[[nodiscard]] std::unique_ptr<CLI::App> make_app(Arguments& arguments);

/// Subcommands that are not hidden.
[[nodiscard]] std::vector<const CLI::App*> shown_subcommands(const CLI::App& app);
/// The named options without --help; the options of all subcommands come last.
[[nodiscard]] std::vector<const CLI::Option*> named_options(const CLI::App& app);
[[nodiscard]] std::vector<const CLI::Option*> positionals(const CLI::App& app);

/// Describes the error in the line and suggests the intended word.
[[nodiscard]] std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

} // namespace warmgraph::tool
