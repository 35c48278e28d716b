#include "kinds.hpp"

#include <ranges>

namespace warmgraph {
namespace {

bool* switch_of(Kinds& kinds, std::string_view name) noexcept
{
    if (name == "graphs") return &kinds.graphs;
    if (name == "compiled") return &kinds.compiled;
    if (name == "tuned") return &kinds.tuned;
    if (name == "profile") return &kinds.profile;
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
