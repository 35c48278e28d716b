#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

#include <unistd.h>

namespace llm {
namespace {

constexpr std::size_t k_gap = 4; // spaces between columns

/// "1912.0" -> "1 912.0"
std::string with_spaces(std::string digits)
{
    std::size_t end = std::min(digits.find('.'), digits.size());
    while (end > 3) {
        end -= 3;
        digits.insert(end, " ");
    }
    return digits;
}

std::string trimmed(std::string line)
{
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

} // namespace

Colour colour_of_stdout()
{
    return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr ? Colour::ansi : Colour::plain;
}

std::string strong(std::string_view text, Colour colour)
{
    return colour == Colour::ansi ? fmt::format("\033[1;32m{}\033[0m", text) : std::string(text);
}

std::string milliseconds(double value)
{
    return with_spaces(value < 1.0 ? fmt::format("{:.2f}", value) : fmt::format("{:.1f}", value)) + " ms";
}

std::string microseconds(double value) { return with_spaces(fmt::format("{:.0f}", value)) + " us"; }

std::vector<std::size_t> Table::widths() const
{
    std::vector<std::size_t> widths;
    for (const Row& row : m_rows) {
        widths.resize(std::max(widths.size(), row.cells.size()));
        for (std::size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], row.cells[i].size());
    }
    return widths;
}

std::string Table::text(Colour colour) const
{
    const std::vector<std::size_t> columns = widths();
    const std::size_t total =
        std::accumulate(columns.begin(), columns.end(), k_gap * (columns.empty() ? 0 : columns.size() - 1));
    std::string text;
    for (const Row& row : m_rows) {
        std::string line = row.cells.empty() ? std::string(total, '-') : "";
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            line += i == 0 ? fmt::format("{:<{}}", row.cells[i], columns[i])
                           : fmt::format("{:>{}}", row.cells[i], columns[i] + k_gap);
        }
        line = trimmed(std::move(line));
        text += (row.is_strong ? strong(line, colour) : line) + "\n";
    }
    return text;
}

} // namespace llm
