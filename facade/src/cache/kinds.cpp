#include "cache/kinds.hpp"

#include <ranges>

namespace warmgraph {

Result<store::KindSet> parse_kinds(std::string_view what, std::string_view text)
{
    constexpr store::KindSet k_all = all_for(store::KindUse::switched);
    if (text.empty() || text == "all") return k_all;
    const bool takes_away = text.starts_with('-');
    store::KindSet kinds = takes_away ? k_all : store::KindSet{};
    for (const auto part : std::views::split(text, ',')) {
        std::string_view name{part.begin(), part.end()};
        if (name.starts_with('-') != takes_away)
            return fail(ErrorCode::invalid_argument,
                        "{} is '{}', expected either kinds that are on (entries,compiled) or kinds that are off "
                        "(-tuned,-profiles)",
                        what, text);
        if (takes_away) name.remove_prefix(1);
        const auto kind = store::parse_kind(what, name, store::KindUse::switched, {"all"});
        if (!kind) return std::unexpected(kind.error());
        if (takes_away)
            kinds.erase(*kind);
        else
            kinds.insert(*kind);
    }
    return kinds;
}

std::string switched_off(std::string_view kind)
{
    return fmt::format("{} are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)", kind);
}

} // namespace warmgraph
