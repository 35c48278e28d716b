// The subcommands. Each returns an exit status, or the error that stopped it.
#pragma once

#include <optional>
#include <string>

#include "context.hpp"
#include "warmgraph/cachefmt/readable.hpp"
#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::tool {

/// Lists functions. `name`: a model, model/function or model/rank/function; nullopt: all functions.
[[nodiscard]] Result<int> ls(const Context& context, const std::optional<std::string>& name);

enum class ShowForm : std::uint8_t { text, dot }; ///< text: text or JSON, see Context::output; dot: the drawing
struct ShowOptions {
    ShowForm form = ShowForm::text;
    cachefmt::Sections only{};
    std::string variant{}; ///< the first digits of its digest; "": all variants
};
/// Shows entries. `target`: model/function, or the path of a .wg file.
[[nodiscard]] Result<int> show(const Context& context, const std::string& target, const ShowOptions& options);

struct ExplainOptions {
    guards::Relaxation relaxation{};
    bool shows_all = false; ///< all stored misses instead of the last one
};
[[nodiscard]] Result<int> explain(const Context& context, const std::string& target, const ExplainOptions& options);
/// Explains the last miss of a program.
[[nodiscard]] Result<int> explain_program(const Context& context, const std::string& name);

enum class RepairMode : std::uint8_t { look_only, repair };
struct CheckOptions {
    /// Bundle files, and the name of functions whose folders are checked; empty: everything.
    std::vector<std::string> what{};
    RepairMode mending = RepairMode::look_only; ///< invalid_argument: repair together with a name or file
    std::string accept_file{}; ///< if given, everything that can be signed must have an accepted signature
};
[[nodiscard]] Result<int> check(const Context& context, const CheckOptions& options);

enum class StatsForm : std::uint8_t { as_context, prometheus }; ///< as_context: text or JSON
[[nodiscard]] Result<int> stats(const Context& context, const std::optional<std::string>& name, StatsForm form);

/// Shows profiles. `name`: a model or model/function; nullopt: all. A profile that cannot be read is reported, with
/// exit status 1.
[[nodiscard]] Result<int> profile(const Context& context, const std::optional<std::string>& name);

/// Writes the page to `file`. Without it: to warmgraph-report.html in the working directory (nowhere with --json).
[[nodiscard]] Result<int> report(const Context& context, const std::optional<std::string>& file);

enum class Confirmation : std::uint8_t {
    who_can_answer, ///< ask before everything is removed, on a terminal or a pipe
    never,
    dry_run, ///< removes nothing, so does not ask
};
struct ClearOptions {
    std::optional<std::string> model;
    std::optional<std::string> function; ///< function, model/function or model/rank/function
    std::string kind = "entries";        ///< a kind's word, "quarantine" or "all"
    Confirmation asking = Confirmation::who_can_answer;
};
[[nodiscard]] Result<int> clear(const Context& context, const ClearOptions& options);

struct PruneOptions {
    std::optional<std::string> to;           ///< the most that may stay: "2G"; default: the cache's budget
    std::optional<std::uint32_t> older_days; ///< objects that were not used for this long are removed in any case
    std::optional<std::string> kind;         ///< prune only this kind
    bool is_dry_run = false;
};
[[nodiscard]] Result<int> prune(const Context& context, const PruneOptions& options);

/// Signs entries, compiled programs and PyTorch artifacts. If signatures are required, signs only objects that already
/// have an accepted signature.
[[nodiscard]] Result<int> sign(const Context& context, const SigningFiles& files);

struct NewKey {
    std::string file; ///< must not exist
    std::string id;
    std::string kind; ///< "hmac-sha256", or "ed25519", which also writes the public half into file.pub
};
[[nodiscard]] Result<int> make_key(const Context& context, const NewKey& wanted);

struct BundleOptions {
    std::string action; ///< "create", "load", ...
    std::vector<std::string> files;
    std::optional<std::string> model;
    std::optional<std::string> function; ///< function, model/function or model/rank/function
    SigningFiles keys{};
    guards::Relaxation relaxation{};
    std::vector<std::string> architectures{}; ///< for strip: the architectures that stay
    std::vector<std::string> kinds{};         ///< words of kinds; empty: all (for create: all but torch)
};
[[nodiscard]] Result<int> bundle(const Context& context, const BundleOptions& options);

struct PrecompileOptions {
    std::string manifest;
    std::vector<std::string> architectures{}; ///< replaces the architectures of the manifest
    SigningFiles keys{};
};
/// Compiles a manifest's programs into the folder. Returns k_found_wrong when some do not compile.
[[nodiscard]] Result<int> precompile(const Context& context, const PrecompileOptions& options);

struct PushOptions {
    std::optional<std::string> model{};
    std::vector<std::string> remotes{}; ///< URLs; empty: $WARMGRAPH_REMOTE
    bool is_dry_run = false;
};
/// Sends the folder's objects to the remotes. Returns k_found_wrong when something could not be sent.
[[nodiscard]] Result<int> push(const Context& context, const PushOptions& options);

struct PullOptions {
    std::optional<std::string> model{};
    std::vector<std::string> remotes{}; ///< URLs; empty: $WARMGRAPH_REMOTE
};
/// Copies what the remotes have and the folder lacks. Returns k_found_wrong when something cannot be used.
[[nodiscard]] Result<int> pull(const Context& context, const PullOptions& options);

[[nodiscard]] Result<int> doctor(const Context& context);
/// Tries each remote. `urls` as in PushOptions. Returns k_found_wrong when one cannot be used.
[[nodiscard]] Result<int> doctor_of_remotes(const Context& context, const std::vector<std::string>& urls);

/// Prints names for shell completions, one a line, sorted: models and model/function. Never fails.
[[nodiscard]] Result<int> names(const Context& context);

} // namespace warmgraph::tool
