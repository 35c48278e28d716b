// The text output of `warmgraph explain`.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "miss_json.hpp"
#include "selection.hpp"
#include "verbs/explanation.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::tool {

namespace {

constexpr std::size_t k_most_of_a_cell = 400; // bytes of a cell: the difference may be at the end of a long value

std::string headline(const Context& context, const Explanation& explanation)
{
    const std::string on_disk = plural(explanation.variants, "variant") + " on disk";
    const std::string& function = explanation.key.function;
    const auto line = [&](Colour colour, const std::string& text) { return context.style.paint(colour, text) + "\n"; };
    switch (explanation.verdict) {
    case CallVerdict::refuse:
        return line(Colour::red,
                    fmt::format("{} would be refused: it was recorded twice with different graphs", function));
    case CallVerdict::hit:
        return line(Colour::green,
                    fmt::format("{} would hit, as far as this command can check: {}", function, on_disk));
    case CallVerdict::miss: break;
    }
    if (const store::Miss* const refused = refused_last(explanation.misses); refused && explanation.variants == 0)
        return line(Colour::red,
                    fmt::format("{} runs as it is ({} of process {} on {}, the last at {}): it is refused", function,
                                plural(std::max<std::uint64_t>(refused->calls, 1), "call"), refused->process,
                                printable(refused->host, 80), printable(refused->time, 40)));
    std::string why = explanation.comparisons.empty() ? "none of them can be read" : "";
    for (const auto& [source, comparison] : explanation.comparisons) {
        if (comparison.mismatches.empty()) continue;
        const std::size_t count = comparison.mismatches.size();
        why = explanation.variants > 1 ? fmt::format("the nearest differs in {}", plural(count, "fact"))
                                       : fmt::format("{} {}", plural(count, "fact"), count == 1 ? "differs" : "differ");
        break;
    }
    if (explanation.variants == 0) why = "record it: run it once";
    return line(Colour::red, fmt::format("{} would miss: {}, {}", function, on_disk, why));
}

std::string tombstone_text(const cachefmt::FunctionKey& key, const cachefmt::EntryInfo& info)
{
    std::string text =
        fmt::format("{}, and a second recording under the same guards differs in:\n", printable(info.reason));
    for (const std::string& line : info.difference) text += fmt::format("  {}\n", printable(line));
    return text + fmt::format("declare what changed as a guard (Spec::config, Spec::code, Spec::version), then "
                              "`warmgraph clear --func {}/{}`\n",
                              cachefmt::model_of(key.model_info), key.function);
}

std::string rest_text(std::uint64_t agree)
{
    return fmt::format("all other facts ({}) agree\n", plural(agree, "fact"));
}

std::string to_text(const Context& context, const cachefmt::FunctionKey& key, const char* source,
                    const Comparison& comparison)
{
    const bool last_miss = std::string_view(source) == "last_miss";
    const std::string against = last_miss ? "the call that missed last" : "this machine and environment";
    std::string text = fmt::format("{}, compared with variant {}:\n", against, short_hex(comparison.variant));
    if (comparison.mismatches.empty()) {
        text += fmt::format("  all {} agree\n", plural(comparison.compared, "fact"));
    } else {
        Table table({{"fact"}, {"recorded"}, {"now"}, {"cure"}}, 2, k_most_of_a_cell);
        for (const guards::Mismatch& m : comparison.mismatches) table.add({m.fact, m.recorded, m.now, m.cure});
        text += table.text(context.style) + rest_text(comparison.compared - comparison.mismatches.size());
    }
    if (comparison.tombstone) text += tombstone_text(key, *comparison.tombstone);
    return text;
}

std::string to_text(const Context& context, const store::Miss& miss, std::string_view title)
{
    std::string text =
        fmt::format("{} at {} ({}, process {} on {}): {}\n  {}\n", context.style.paint(Colour::bold, title),
                    printable(miss.time, 40), printable(miss.policy, 40), miss.process, printable(miss.host, 80),
                    to_string(miss.end), printable(miss.reason, 1000));
    if (!miss.nearest || miss.differences.empty()) return text;
    text += fmt::format("  compared with variant {} at that time, the nearest of {}:\n", short_hex(*miss.nearest),
                        count_text(miss.variants));
    Table table({{"fact"}, {"recorded"}, {"now"}, {"cure"}}, 4, k_most_of_a_cell);
    for (const store::MissedFact& fact : miss.differences) table.add({fact.fact, fact.recorded, fact.now, fact.cure});
    text += table.text(context.style);
    if (miss.more > 0) text += fmt::format("    and {}\n", plural(miss.more, "further difference"));
    return text + "  " + rest_text(miss.agree);
}

std::string misses_text(const Context& context, const std::vector<store::Miss>& misses, MissCount count)
{
    if (misses.empty()) return "no miss of it is known\n";
    if (count == MissCount::last) {
        const std::string more =
            misses.size() == 1 ? ""
                               : fmt::format("{} before it: --all shows them\n", plural(misses.size() - 1, "miss"));
        return to_text(context, misses.front(), "the last miss") + more;
    }
    std::string text;
    for (std::size_t i = 0; i < misses.size(); ++i)
        text += to_text(context, misses[i], fmt::format("miss {} of {}", i + 1, misses.size()));
    return text;
}

std::string elsewhere_text(const SiblingFunction& item, const cachefmt::FunctionKey& key)
{
    std::string text = fmt::format("  {} ({})", full_name(item.key), plural(item.variants, "variant"));
    std::vector<std::string> differences;
    for (const guards::Mismatch& m : item.differences)
        differences.push_back(fmt::format("{}: {} there, {} here", printable(m.fact, 80), printable(m.recorded, 80),
                                          printable(m.now, 80)));
    if (differences.empty() && item.key.rank != key.rank)
        differences.push_back(fmt::format("rank: {} there, {} here", item.key.rank, key.rank));
    if (!differences.empty()) text += fmt::format("\n    {}", fmt::join(differences, "\n    "));
    return text + "\n";
}

} // namespace

std::string to_text(const Context& context, const Explanation& explanation, MissCount count)
{
    std::string text = headline(context, explanation);
    text += misses_text(context, explanation.misses.list, count);
    for (const auto& [source, comparison] : explanation.comparisons)
        text += to_text(context, explanation.key, source, comparison);
    for (const auto& [digest, error] : explanation.unusable)
        text += fmt::format("variant {} cannot be used: {}\n", short_hex(digest), printable(error.message));
    if (!explanation.elsewhere.empty()) text += "also recorded, but not used by this process:\n";
    for (const SiblingFunction& item : explanation.elsewhere) text += elsewhere_text(item, explanation.key);
    for (const std::string& path : explanation.binary_problems)
        text += fmt::format("the build id of {} is not compared: the file does not exist here, or has no build id\n",
                            printable(path, 400));
    if (!explanation.device_problem.empty())
        text += fmt::format("device: {}\n", printable(explanation.device_problem, 1000));
    if (!explanation.last_miss_problem.empty())
        text += fmt::format("last miss: {}\n", printable(explanation.last_miss_problem));
    return text;
}

} // namespace warmgraph::tool
