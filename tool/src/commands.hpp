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

enum class ClearKind : std::uint8_t { entries, images, quarantine, all };
struct ClearOptions {
    std::optional<std::string> model, function;
    ClearKind kind = ClearKind::entries;
};
[[nodiscard]] Result<int> clear(const Context& context, const ClearOptions& options);

[[nodiscard]] Result<int> doctor(const Context& context);

} // namespace warmgraph::tool
