#include "warmgraph/base/units.hpp"

#include <array>

#include <fmt/format.h>

namespace warmgraph {
namespace {

std::string plural_of(std::string_view noun)
{
    constexpr std::string_view k_vowels = "aeiou";
    const bool ends_with_y =
        noun.size() > 1 && noun.back() == 'y' && k_vowels.find(noun[noun.size() - 2]) == std::string_view::npos;
    if (ends_with_y) return fmt::format("{}ies", noun.substr(0, noun.size() - 1));
    return fmt::format("{}{}", noun, noun.ends_with('s') ? "es" : "s");
}

} // namespace

std::string size_text(std::uint64_t bytes)
{
    constexpr double k_step = 1024;
    static constexpr std::array k_units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double size = static_cast<double>(bytes) / k_step;
    std::size_t unit = 0;
    for (; size >= k_step - 0.5 && unit + 1 < k_units.size(); size /= k_step) ++unit;
    return fmt::format("{:.{}f} {}", size, size < 9.95 ? 1 : 0, k_units[unit]);
}

std::string time_text(double milliseconds)
{
    return milliseconds < 1000 ? fmt::format("{:.1f} ms", milliseconds) : fmt::format("{:.2f} s", milliseconds / 1000);
}

std::string count_text(std::uint64_t count)
{
    std::string digits = std::to_string(count);
    for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, " ");
    return digits;
}

std::string plural(std::uint64_t count, std::string_view noun)
{
    return fmt::format("{} {}", count_text(count), count == 1 ? std::string(noun) : plural_of(noun));
}

} // namespace warmgraph
