#include "warmgraph/guards/interface_text.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace warmgraph::guards {

using cachefmt::RegionKind;

namespace {

constexpr std::pair<RegionKind, std::string_view> k_kinds[]{{RegionKind::input, "input"},
                                                            {RegionKind::output, "output"},
                                                            {RegionKind::state, "state"},
                                                            {RegionKind::weights, "weights"}};

std::string_view kind_name(RegionKind kind) noexcept
{
    const auto* const known = std::ranges::find(k_kinds, kind, &std::pair<RegionKind, std::string_view>::first);
    return known != std::end(k_kinds) ? known->second : "weights";
}

RegionKind kind_of(std::string_view name) noexcept
{
    const auto* const known = std::ranges::find(k_kinds, name, &std::pair<RegionKind, std::string_view>::second);
    return known != std::end(k_kinds) ? known->first : RegionKind::state;
}

std::vector<std::string_view> split(std::string_view text, std::string_view by)
{
    std::vector<std::string_view> parts;
    for (std::size_t end = text.find(by); end != std::string_view::npos; end = text.find(by)) {
        parts.push_back(text.substr(0, end));
        text.remove_prefix(end + by.size());
    }
    parts.push_back(text);
    return parts;
}

/// Returns the number, or 0 if the text is not a number.
template <class T>
T parse_number(std::string_view text)
{
    T value{};
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// Parses a text such as "scalar position i32 [0, 255]".
std::optional<NumberDecl> parse_scalar(std::string_view text)
{
    std::istringstream words{std::string(text)};
    std::string what, name, type, low, high;
    words >> what >> name >> type >> low >> high;
    const auto dtype = parse_dtype(type);
    if (!dtype || low.empty() || high.empty()) return std::nullopt;
    low.erase(0, 1);
    low.pop_back();
    high.pop_back();
    NumberDecl decl{name, *dtype, std::nullopt};
    const auto whole = range_of(decl);
    if (!whole || low != number_text(*dtype, whole->low) || high != number_text(*dtype, whole->high))
        decl.range = {parse_number<double>(low), parse_number<double>(high)};
    return decl;
}

} // namespace

std::string interface_text(std::span<const RegionKind> kinds, std::span<const NumberDecl> scalars,
                           std::span<const ScalarRange> ranges)
{
    // Counts adjacent tensors of one kind together: other guards have their names, and a model may have thousands of
    // weights.
    std::string text;
    for (std::size_t i = 0; i < kinds.size();) {
        std::size_t end = i + 1;
        while (end < kinds.size() && kinds[end] == kinds[i]) ++end;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", end - i, kind_name(kinds[i]));
        i = end;
    }
    for (std::size_t i = 0; i < scalars.size(); ++i)
        text +=
            fmt::format("; scalar {} {} [{}, {}]", scalars[i].name, to_string(scalars[i].dtype),
                        number_text(scalars[i].dtype, ranges[i].low), number_text(scalars[i].dtype, ranges[i].high));
    return text;
}

DeclaredInterface parse_interface(std::string_view text, std::size_t tensors)
{
    DeclaredInterface declared;
    const auto parts = split(text, "; ");
    for (const std::string_view run : split(parts.front(), ", ")) {
        const RegionKind kind = kind_of(run.substr(std::min(run.find(' ') + 1, run.size())));
        for (auto left = parse_number<std::size_t>(run); left != 0 && declared.kinds.size() != tensors; --left)
            declared.kinds.push_back(kind);
    }
    for (std::size_t i = 1; i < parts.size(); ++i)
        if (auto scalar = parse_scalar(parts[i])) declared.scalars.push_back(std::move(*scalar));
    return declared;
}

} // namespace warmgraph::guards
