#include "warmgraph/store/kind.hpp"

#include <algorithm>

namespace warmgraph::store {

std::string_view to_string(Kind kind) noexcept
{
    switch (kind) {
    case Kind::graphs: return "graphs";
    case Kind::compiled: return "compiled";
    case Kind::tuned: return "tuned";
    case Kind::profile: return "profile";
    case Kind::torch: return "torch";
    }
    return "unknown";
}

std::optional<Kind> kind_of(std::string_view name) noexcept
{
    const auto* const found = std::ranges::find(k_kinds, name, to_string);
    return found == k_kinds.end() ? std::nullopt : std::optional(*found);
}

Kind kind_of(const Name& name) noexcept
{
    const auto* const artifact = std::get_if<ArtifactName>(&name);
    if (artifact == nullptr) return Kind::graphs;
    switch (artifact->kind) {
    case ArtifactKind::compiled: return Kind::compiled;
    case ArtifactKind::profile: return Kind::profile;
    case ArtifactKind::torch: return Kind::torch;
    case ArtifactKind::best_config:
    case ArtifactKind::module_configs: break;
    }
    return Kind::tuned;
}

} // namespace warmgraph::store
