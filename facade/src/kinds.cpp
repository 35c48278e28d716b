#include "kinds.hpp"

#include <ranges>

#include "warmgraph/store/kind.hpp"

namespace warmgraph {
namespace {

/// None for what is no kind, and for what PyTorch compiled, which its callers ask for themselves.
bool* switch_of(Kinds& kinds, std::string_view name) noexcept
{
    const auto kind = store::kind_of(name);
    if (!kind) return nullptr;
    switch (*kind) {
    case store::Kind::graphs: return &kinds.graphs;
    case store::Kind::compiled: return &kinds.compiled;
    case store::Kind::tuned: return &kinds.tuned;
    case store::Kind::profile: return &kinds.profile;
    case store::Kind::torch: break;
    }
    return nullptr;
}

} // namespace

Result<Kinds> parse_kinds(std::string_view what, std::string_view text)
{
    if (text.empty() || text == "all") return Kinds{};
    const bool takes_away = text.starts_with('-');
    Kinds kinds = takes_away ? Kinds{} : Kinds{false, false, false, false};
    for (const auto part : std::views::split(text, ',')) {
        std::string_view name{part.begin(), part.end()};
        if (name.starts_with('-') != takes_away)
            return fail(ErrorCode::invalid_argument,
                        "{} is '{}', expected either kinds that are on (graphs,compiled) or kinds that are off "
                        "(-tuned,-profile)",
                        what, text);
        if (takes_away) name.remove_prefix(1);
        bool* const of_kind = switch_of(kinds, name);
        if (of_kind == nullptr)
            return fail(ErrorCode::invalid_argument,
                        "{} has the kind '{}', expected all, or some of graphs, compiled, tuned and profile", what,
                        name);
        *of_kind = !takes_away;
    }
    return kinds;
}

std::string switched_off(std::string_view kind)
{
    return fmt::format("{} are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)", kind);
}

} // namespace warmgraph
