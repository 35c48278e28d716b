#include "terminal.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::tool {

std::string Style::paint(Colour colour, std::string_view text) const
{
    static constexpr std::array<std::string_view, 5> codes{"0", "1", "31", "32", "33"};
    if (!colours || colour == Colour::plain) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
}

Style style_of(std::string_view wish)
{
    if (wish != "auto") return {wish == "always"};
    return {takes_escapes(STDOUT_FILENO) && environment("NO_COLOR").value_or("").empty()};
}

bool takes_escapes(int descriptor)
{
    const std::string kind = environment("TERM").value_or("");
    return ::isatty(descriptor) == 1 && !kind.empty() && kind != "dumb";
}

std::optional<std::size_t> terminal_columns() noexcept
{
    struct winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
    return size.ws_col;
}

void Table::add(std::vector<std::string> row)
{
    for (std::string& cell : row) cell = printable(cell, m_most);
    row.resize(m_columns.size());
    m_rows.push_back(std::move(row));
}

std::string Table::text(const Style& style) const
{
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < m_columns.size(); ++i) {
        widths.push_back(m_columns[i].title.size());
        for (const auto& row : m_rows) widths[i] = std::max(widths[i], row[i].size());
    }
    const auto line_of = [&](const auto& cell_at) {
        std::string line(m_indent, ' ');
        for (std::size_t i = 0; i < m_columns.size(); ++i) {
            const std::string& cell = cell_at(i);
            line += m_columns[i].align == Align::right ? fmt::format("{:>{}}", cell, widths[i])
                                                       : fmt::format("{:<{}}", cell, widths[i]);
            line += "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        return line;
    };
    std::string text =
        style.paint(Colour::bold, line_of([&](std::size_t i) -> const std::string& { return m_columns[i].title; })) +
        "\n";
    for (const auto& row : m_rows) text += line_of([&](std::size_t i) -> const std::string& { return row[i]; }) + "\n";
    return text;
}

std::string ago_text(std::chrono::system_clock::time_point then, std::chrono::system_clock::time_point now)
{
    struct Unit {
        std::int64_t seconds;
        std::string_view name;
    };
    static constexpr std::array units{Unit{86'400, "d"}, Unit{3'600, "h"}, Unit{60, "min"}, Unit{1, "s"}};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - then).count();
    if (seconds < -60) return "in the future"; // a smaller difference only means that two clocks disagree a little
    for (const Unit& unit : units)
        if (seconds >= unit.seconds) return fmt::format("{} {} ago", seconds / unit.seconds, unit.name);
    return "now";
}

} // namespace warmgraph::tool
