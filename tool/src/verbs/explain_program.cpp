// `warmgraph explain PROGRAM --kind compiled`: why a program had to be compiled, from its stored miss.
#include <algorithm>

#include <fmt/ranges.h>

#include "commands.hpp"
#include "line/suggestion.hpp"
#include "miss_json.hpp"
#include "selection.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::tool {

namespace {

std::vector<std::string> names_of(const std::vector<store::Miss>& misses)
{
    std::vector<std::string> names;
    for (const store::Miss& miss : misses) names.push_back(miss.program);
    return names;
}

std::string to_text(const Context& context, const store::Miss& miss)
{
    std::string text = fmt::format("{} at {} ({}, process {} on {}): {}\n  {}\n",
                                   context.style.paint(Colour::bold, "the last miss of " + printable(miss.program, 80)),
                                   printable(miss.time, 40), printable(miss.policy, 40), miss.process,
                                   printable(miss.host, 80), to_string(miss.end), printable(miss.reason, 1000));
    if (miss.differences.empty()) return text;
    text += fmt::format("  compared with the nearest of {}, at that time:\n", plural(miss.variants, "compiled image"));
    Table table({{"what"}, {"then"}, {"now"}, {"cure"}}, 4, 400);
    for (const store::MissedFact& fact : miss.differences) table.add({fact.fact, fact.recorded, fact.now, fact.cure});
    text += table.text(context.style);
    return miss.more > 0 ? text + fmt::format("    and {}\n", plural(miss.more, "further difference")) : text;
}

} // namespace

Result<int> explain_program(const Context& context, const std::string& name)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    if (!*store)
        return fail(ErrorCode::not_found, "no miss of '{}' is known: {}", printable(name, 80), no_folder_text(context));
    const auto misses = (*store)->program_misses();
    if (!misses) return std::unexpected(misses.error());
    const auto found = std::ranges::find(misses->list, name, &store::Miss::program);
    if (found == misses->list.end())
        return fail(ErrorCode::not_found, "no miss of a program '{}' is known: the last misses are of {}{}",
                    printable(name, 80),
                    misses->list.empty() ? "none" : fmt::format("{}", fmt::join(names_of(misses->list), ", ")),
                    did_you_mean(name, names_of(misses->list)));
    if (context.output == Output::json) {
        Json json = miss_json(*found);
        json["program"] = found->program;
        print(json);
    } else {
        print(to_text(context, *found));
    }
    return k_found_wrong;
}

} // namespace warmgraph::tool
