#include "warmgraph/base/kernel_name.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include <cxxabi.h>

#include "mangled_name.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph {
namespace {

constexpr std::size_t k_longest = 120;
constexpr std::size_t k_longest_mangled = 64UL << 10U; // libstdc++ itself refuses names over 1 KiB
constexpr std::size_t k_longest_argument = 12;
constexpr std::size_t k_most_arguments = 2;
constexpr std::string_view k_anonymous = "(anonymous namespace)::";
constexpr std::string_view k_cut = "...";

bool is_upper_or_digit(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); }

/// A lower bound for the back references ("S_", "S1A_", "T_", "T0_") in the name.
std::size_t references(std::string_view mangled) noexcept
{
    std::size_t count = 0;
    bool is_open = false; // true after an S or T, while only its number has followed
    for (const char c : mangled) {
        if (c == '_' && is_open) ++count;
        is_open = c == 'S' || c == 'T' || (is_open && is_upper_or_digit(c));
    }
    return count;
}

/// A lower bound for the pack expansions in the name.
std::size_t packs(std::string_view mangled) noexcept
{
    std::size_t count = 0;
    for (std::size_t at = 1; at < mangled.size(); ++at)
        if (mangled[at] == 'p' && (mangled[at - 1] == 'D' || mangled[at - 1] == 's')) ++count;
    return count;
}

/// True if the demangled name is certain to be small. Each reference may double it, and a pack expansion repeats it
/// hundreds of times: a crafted name of 200 bytes would become a gigabyte.
bool is_safe(std::string_view mangled) noexcept
{
    constexpr std::size_t k_most_references = 12, k_references_of_a_pack = 8;
    return mangled.starts_with("_Z") && mangled.size() <= k_longest_mangled && !mangled.contains('\0') &&
           references(mangled) + k_references_of_a_pack * packs(mangled) <= k_most_references;
}

std::optional<std::string> demangled(std::string_view mangled)
{
    if (!is_safe(mangled)) return std::nullopt;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text{
        abi::__cxa_demangle(std::string{mangled}.c_str(), nullptr, nullptr, &status), &std::free};
    return text ? std::optional<std::string>{text.get()} : std::nullopt;
}

/// Returns the position of the bracket that closes the one at `open`, or the end of the text.
std::size_t close_of(std::string_view text, std::size_t open) noexcept
{
    std::size_t depth = 0;
    for (std::size_t at = open; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '<' || c == '(') ++depth;
        const bool closes = c == ')' || (c == '>' && text[at - 1] != '-'); // the ">" of "->" is not a bracket
        if (closes && --depth == 0) return at;
    }
    return text.size();
}

bool is_short(std::string_view argument) noexcept
{
    return argument.size() <= k_longest_argument && std::ranges::all_of(argument, [](char c) {
               return is_upper_or_digit(c) || (c >= 'a' && c <= 'z') || std::string_view{"_:*&- "}.contains(c);
           });
}

/// Returns "<128, 2, ...>" for the text between the brackets.
std::string short_arguments(std::string_view inside)
{
    std::string out = "<";
    for (std::size_t count = 0; !inside.empty(); ++count) {
        if (count > 0) out += ", ";
        const std::string_view argument = inside.substr(0, inside.find(','));
        if (count == k_most_arguments || !is_short(argument)) return out.append(k_cut) + ">";
        out += argument;
        inside.remove_prefix(std::min(argument.size() + std::string_view{", "}.size(), inside.size()));
    }
    return out + ">";
}

/// Returns the demangled name without the result type, the parameters and long template arguments.
std::string outline(std::string_view text)
{
    if (text.starts_with("void ")) text.remove_prefix(std::string_view{"void "}.size());
    std::string out;
    std::size_t parameters = std::string::npos; // start of the last "(...)", which holds the function's own parameters
    for (std::size_t at = 0; at < text.size();) {
        if (text.substr(at).starts_with(k_anonymous)) {
            at += k_anonymous.size();
        } else if (text[at] == '<' || text[at] == '(') {
            const std::size_t close = close_of(text, at);
            if (text[at] == '(') parameters = out.size();
            out += text[at] == '(' ? "()" : short_arguments(text.substr(at + 1, close - at - 1));
            at = close + 1;
        } else {
            out += text[at++];
        }
    }
    return out.substr(0, parameters);
}

/// Cuts the name in the middle, never inside a UTF-8 character.
std::string cut(std::string name)
{
    if (name.size() <= k_longest) return name;
    const auto is_inside = [&name](std::size_t at) { return (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80; };
    std::size_t head = (k_longest - k_cut.size()) / 2, tail = name.size() - head;
    while (is_inside(head)) --head;
    while (is_inside(tail)) ++tail;
    return name.substr(0, head).append(k_cut).append(name, tail);
}

} // namespace

std::string readable_kernel_name(std::string_view mangled)
{
    std::string name;
    if (const auto text = demangled(mangled)) name = outline(*text);
    if (name.empty()) name = beginning_of_mangled(mangled).value_or(std::string{mangled});
    return cut(printable(name));
}

} // namespace warmgraph
