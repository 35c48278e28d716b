// The subcommands: each gives an exit status, or the error that stopped it.
#pragma once

#include <optional>
#include <string>

#include "context.hpp"
#include "warmgraph/cachefmt/readable.hpp"
#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::tool {

/// `name`: a model, model/function or model/rank/function; nullopt: all.
[[nodiscard]] Result<int> ls(const Context& context, const std::optional<std::string>& name);

enum class ShowForm : std::uint8_t { text, dot }; ///< as text or JSON, as Context::output says; or the drawing
struct ShowOptions {
    ShowForm form = ShowForm::text;
    cachefmt::Sections only{};
    std::string variant{}; ///< the first digits of its digest; "" for all
};
/// `target`: model/function, or the path of a .wg file.
[[nodiscard]] Result<int> show(const Context& context, const std::string& target, const ShowOptions& options);

struct ExplainOptions {
    guards::Relaxation relaxation{};
    bool shows_all = false; ///< all misses that are kept, not only the last
};
[[nodiscard]] Result<int> explain(const Context& context, const std::string& target, const ExplainOptions& options);
/// The last miss of a program.
[[nodiscard]] Result<int> explain_program(const Context& context, const std::string& name);

enum class Mending : std::uint8_t { look_only, repair };
struct CheckOptions {
    std::vector<std::string> what{};      ///< bundles' files, and a name: only those functions' folders; empty: all
    Mending mending = Mending::look_only; ///< invalid_argument: repair of what is named
    std::string accept_file{};            ///< where it is given, all that can be signed must have an accepted signature
};
[[nodiscard]] Result<int> check(const Context& context, const CheckOptions& options);

enum class StatsForm : std::uint8_t { as_context, prometheus }; ///< as_context: text or JSON
[[nodiscard]] Result<int> stats(const Context& context, const std::optional<std::string>& name, StatsForm form);

/// `name`: a model or model/function; nullopt: all. Profiles that cannot be read are told, with exit status 1.
[[nodiscard]] Result<int> profile(const Context& context, const std::optional<std::string>& name);

/// Writes the page to `file` (without one to warmgraph-report.html in the working directory, but not with --json).
[[nodiscard]] Result<int> report(const Context& context, const std::optional<std::string>& file);

enum class Asking : std::uint8_t {
    who_can_answer, ///< before everything is removed: on a terminal, or who writes into a pipe
    never,
    dry_run, ///< removes nothing, so that there is nothing to ask
};
struct ClearOptions {
    std::optional<std::string> model;
    std::optional<std::string> function; ///< function, model/function or model/rank/function
    std::string kind = "entries";        ///< a kind's word, "quarantine" or "all"
    Asking asking = Asking::who_can_answer;
};
[[nodiscard]] Result<int> clear(const Context& context, const ClearOptions& options);

struct PruneOptions {
    std::optional<std::string> to;           ///< what may stay: "2G"; else the cache's budget
    std::optional<std::uint32_t> older_days; ///< what was not used for so long goes in any case
    std::optional<std::string> kind;         ///< of this one alone
    bool is_dry_run = false;
};
[[nodiscard]] Result<int> prune(const Context& context, const PruneOptions& options);

/// Signs every entry, compiled program and what PyTorch compiled; where a signature is required, what accepted keys signed.
[[nodiscard]] Result<int> sign(const Context& context, const SigningFiles& files);

struct NewKey {
    std::string file; ///< must not exist
    std::string id;
    std::string kind; ///< "hmac-sha256" or "ed25519", whose public half goes into file.pub
};
[[nodiscard]] Result<int> make_key(const Context& context, const NewKey& wanted);

struct BundleOptions {
    std::string action; ///< "create", "load", ...
    std::vector<std::string> files;
    std::optional<std::string> model;
    std::optional<std::string> function; ///< function, model/function or model/rank/function
    SigningFiles keys{};
    guards::Relaxation relaxation{};
    std::vector<std::string> architectures{}; ///< strip: those that stay
    std::vector<std::string> kinds{};         ///< their words; empty: all (create: but torch)
};
[[nodiscard]] Result<int> bundle(const Context& context, const BundleOptions& options);

struct PrecompileOptions {
    std::string manifest;
    std::vector<std::string> architectures{}; ///< in place of the manifest's
    SigningFiles keys{};
};
/// Compiles a manifest's programs into the folder. k_found_wrong: not all of them do.
[[nodiscard]] Result<int> precompile(const Context& context, const PrecompileOptions& options);

[[nodiscard]] Result<int> doctor(const Context& context);

/// What may be given as a name, one a line, sorted: models and model/function, for completions. Never fails.
[[nodiscard]] Result<int> names(const Context& context);

} // namespace warmgraph::tool
