#include <algorithm>
#include <cctype>
#include <string_view>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view take_text(std::string_view& rest)
{
    const auto end = std::ranges::find_if(rest, is_digit);
    const std::string_view text = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    rest.remove_prefix(text.size());
    return text;
}

/// Takes the digits of the next number without leading zeros: a longer text is a larger number, and nothing can
/// overflow.
std::string_view take_number(std::string_view& rest)
{
    const auto end = std::ranges::find_if_not(rest, is_digit);
    std::string_view digits = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    rest.remove_prefix(digits.size());
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
}

} // namespace

bool same_or_newer(const std::string& recorded, const std::string& now)
{
    if (recorded == now) return true;
    std::string_view was = recorded;
    std::string_view is = now;
    // The text before the first number names the product. Versions of different products cannot be compared.
    if (take_text(was) != take_text(is) || was.empty() || is.empty()) return false;
    while (!was.empty() || !is.empty()) {
        const std::string_view before = take_number(was);
        const std::string_view after = take_number(is);
        if (before.size() != after.size()) return before.size() < after.size();
        if (before != after) return before < after;
        take_text(was);
        take_text(is);
    }
    return true;
}

} // namespace warmgraph::guards
