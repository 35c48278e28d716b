// The subcommands: each gives an exit status, or the error that stopped it.
#pragma once

#include <optional>
#include <string>

#include "context.hpp"
#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::tool {

[[nodiscard]] Result<int> ls(const Context& context);

enum class ShowForm : std::uint8_t { text, json, dot };
/// `target`: model/function, or the path of a .wg file.
[[nodiscard]] Result<int> show(const Context& context, const std::string& target, ShowForm form);

[[nodiscard]] Result<int> explain(const Context& context, const std::string& target,
                                  const guards::Relaxation& relaxation);

enum class Mending : std::uint8_t { look_only, repair };
[[nodiscard]] Result<int> check(const Context& context, Mending mending);

[[nodiscard]] Result<int> stats(const Context& context);

/// Writes the page to `file` (without one to warmgraph-report.html in the working directory, but not with --json).
[[nodiscard]] Result<int> report(const Context& context, const std::optional<std::string>& file);

enum class Asking : std::uint8_t {
    on_terminal, ///< before everything is removed, where somebody can answer
    never,
    dry_run, ///< removes nothing, so that there is nothing to ask
};
struct ClearOptions {
    std::optional<std::string> model;
    std::optional<std::string> function; ///< function, model/function or model/rank/function
    store::ClearKind kind = store::ClearKind::entries;
    Asking asking = Asking::on_terminal;
};
[[nodiscard]] Result<int> clear(const Context& context, const ClearOptions& options);

[[nodiscard]] Result<int> doctor(const Context& context);

} // namespace warmgraph::tool
