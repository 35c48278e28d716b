#include "warmgraph/store/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::store {
namespace {

constexpr std::size_t k_shown_of_setting = 64; // bytes of a bad setting in a message

/// Parses the whole text as a number without a sign.
template <class Number>
std::optional<Number> number_of(std::string_view text)
{
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Cuts a unit from the end ("G", "GB", "GiB", with blanks before it) and returns its factor.
std::uint64_t cut_unit(std::string_view& text)
{
    constexpr std::array<std::pair<char, int>, 8> k_units{
        {{'K', 10}, {'M', 20}, {'G', 30}, {'T', 40}, {'k', 10}, {'m', 20}, {'g', 30}, {'t', 40}}};
    const auto cut_blanks = [&] {
        text.remove_suffix(text.size() - std::min(text.size(), text.find_last_not_of(' ') + 1));
    };
    const bool is_binary = text.ends_with("iB") || text.ends_with("ib");
    if (is_binary || text.ends_with('B') || text.ends_with('b')) text.remove_suffix(is_binary ? 2 : 1);
    if (!is_binary) cut_blanks(); // a blank may stand before the B, as in "10 B"
    std::uint64_t factor = 1;
    if (!text.empty()) {
        const auto unit = std::ranges::find(k_units, text.back(), &std::pair<char, int>::first);
        if (unit != k_units.end()) {
            text.remove_suffix(1);
            factor = std::uint64_t{1} << unit->second;
        }
    }
    cut_blanks();
    return factor;
}

/// Converts "1.5" of a unit to whole bytes.
std::optional<std::uint64_t> amount_of(std::string_view text, std::uint64_t unit)
{
    const std::size_t point = text.find('.');
    const auto whole = number_of<std::uint64_t>(text.substr(0, point));
    if (!whole || *whole > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
    if (point == std::string_view::npos) return *whole * unit;
    constexpr std::size_t k_most_digits = 6;
    const std::string_view digits = text.substr(point + 1);
    const auto part = number_of<std::uint64_t>(digits);
    if (!part || digits.size() > k_most_digits || unit == 1) return std::nullopt;
    std::uint64_t scale = 1;
    for (std::size_t i = 0; i < digits.size(); ++i) scale *= 10;
    const std::uint64_t more = (unit >> 10) * *part / scale << 10; // rounded down to a KiB; the product cannot overflow
    return *whole * unit > std::numeric_limits<std::uint64_t>::max() - more ? std::nullopt
                                                                            : std::optional(*whole * unit + more);
}

/// Adds one part of a budget: "8G" or "compiled=1G".
Result<void> add_part(BytesBudget& budget, std::string_view what, std::string_view part)
{
    const std::size_t equals = part.find('=');
    const auto bytes = parse_bytes(what, part.substr(equals == std::string_view::npos ? 0 : equals + 1));
    if (!bytes) return std::unexpected(bytes.error());
    if (equals == std::string_view::npos) {
        budget.all = *bytes;
        return {};
    }
    const auto kind = parse_kind(what, part.substr(0, equals), KindUse::budgeted);
    if (!kind) return std::unexpected(kind.error());
    budget.kinds[*kind] = *bytes;
    return {};
}

} // namespace

Result<std::vector<std::uint32_t>> parse_owners(std::string_view what, std::string_view text)
{
    std::vector<std::uint32_t> owners;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const auto owner = number_of<std::uint32_t>(rest.substr(0, comma));
        if (!owner || comma + 1 == rest.size())
            return fail(ErrorCode::invalid_argument, "{} is '{}', expected user ids like 1000 or 1000,1001", what,
                        printable(text, k_shown_of_setting));
        owners.push_back(*owner);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return owners;
}

Result<std::uint64_t> parse_bytes(std::string_view what, std::string_view text)
{
    std::string_view digits = text;
    const std::uint64_t unit = cut_unit(digits);
    const auto bytes = amount_of(digits, unit);
    if (!bytes)
        return fail(ErrorCode::invalid_argument,
                    "{} is '{}', expected a size like 8G, 1.5 GiB, 500M or 1000000 (bytes)", what,
                    printable(text, k_shown_of_setting));
    return *bytes;
}

Result<std::uint64_t> parse_count(std::string_view what, std::string_view text)
{
    if (const auto number = number_of<std::uint64_t>(text)) return *number;
    return fail(ErrorCode::invalid_argument, "{} is '{}', expected a number like 100000", what,
                printable(text, k_shown_of_setting));
}

Result<BytesBudget> parse_budget(std::string_view what, std::string_view text)
{
    BytesBudget budget;
    if (text.empty()) return budget;
    for (const auto part : std::views::split(text, ','))
        if (auto ok = add_part(budget, what, {part.begin(), part.end()}); !ok) return std::unexpected(ok.error());
    return budget;
}

Result<KindSet> parse_kinds(std::string_view what, std::string_view text)
{
    constexpr KindSet k_all = all_for(KindUse::switched);
    if (text.empty() || text == "all") return k_all;
    const bool takes_away = text.starts_with('-');
    KindSet kinds = takes_away ? k_all : KindSet{};
    for (const auto part : std::views::split(text, ',')) {
        std::string_view name{part.begin(), part.end()};
        if (name.starts_with('-') != takes_away)
            return fail(ErrorCode::invalid_argument,
                        "{} is '{}', expected either kinds that are on (entries,compiled) or kinds that are off "
                        "(-tuned,-profiles)",
                        what, text);
        if (takes_away) name.remove_prefix(1);
        const auto kind = parse_kind(what, name, KindUse::switched, {"all"});
        if (!kind) return std::unexpected(kind.error());
        if (takes_away)
            kinds.erase(*kind);
        else
            kinds.insert(*kind);
    }
    return kinds;
}

Result<BytesBudget> environment_bytes()
{
    constexpr const char* k_variable = "WARMGRAPH_CACHE_BYTES";
    return parse_budget(k_variable, environment(k_variable).value_or(""));
}

Budget environment_budget()
{
    constexpr const char* k_variable = "WARMGRAPH_CACHE_FILES";
    const BytesBudget bytes = or_default(environment_bytes());
    const std::string files = environment(k_variable).value_or("");
    return {bytes.all, files.empty() ? 0 : or_default(parse_count(k_variable, files)), bytes.kinds};
}

Packings environment_packings()
{
    constexpr const char* k_variable = "WARMGRAPH_COMPRESSION";
    return or_default(parse_packings(k_variable, environment(k_variable).value_or("")));
}

Result<KindSet> environment_kinds()
{
    constexpr const char* k_variable = "WARMGRAPH_KINDS";
    return parse_kinds(k_variable, environment(k_variable).value_or(""));
}

Result<std::string> resolve_key_tag(std::string given)
{
    constexpr std::size_t k_longest = 256;
    std::string tag = given.empty() ? environment("WARMGRAPH_CACHE_KEY_TAG").value_or("") : std::move(given);
    if (tag.size() > k_longest || !std::ranges::all_of(tag, [](char c) { return c >= ' ' && c <= '~'; }))
        return fail(ErrorCode::invalid_argument,
                    "cache_key_tag is '{}' with {} bytes, expected at most {} printable ASCII characters",
                    printable(tag, k_shown_of_setting), tag.size(), k_longest);
    return tag;
}

std::string switched_off(std::string_view kind)
{
    return fmt::format("{} are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)", kind);
}

} // namespace warmgraph::store
