// Helpers that the sections of the text form share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt {

/// Colours text for a terminal, or leaves it unchanged.
struct Paint {
    Inks inks = Inks::none;
    [[nodiscard]] std::string bold(const std::string& text) const { return with("1", text); }
    [[nodiscard]] std::string faint(const std::string& text) const { return with("2", text); }
    [[nodiscard]] std::string red(const std::string& text) const { return with("31", text); }

private:
    [[nodiscard]] std::string with(std::string_view code, const std::string& text) const
    {
        return inks == Inks::none ? text : fmt::format("\x1b[{}m{}\x1b[0m", code, text);
    }
};

/// The width of a printable() text on a terminal: its number of code points.
[[nodiscard]] inline std::size_t columns_of(std::string_view text)
{
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Returns the text, cut to `most` columns with "..." at the end if it is longer.
[[nodiscard]] inline std::string cut_to(std::string text, std::size_t most)
{
    constexpr std::string_view k_more = "...";
    if (columns_of(text) <= most) return text;
    std::size_t kept = 0, end = 0;
    for (; end < text.size(); ++end) {
        const bool is_start = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
        if (is_start && ++kept > most - k_more.size()) break;
    }
    text.resize(end);
    return text.append(k_more);
}

/// Rows of cells, each column as wide as its widest cell; lines have no trailing blanks.
class Table {
public:
    explicit Table(std::vector<std::string> header) { m_rows.push_back(std::move(header)); }
    void add(std::vector<std::string> row) { m_rows.push_back(std::move(row)); }
    /// Adds a less important row.
    void add_faint(std::vector<std::string> row)
    {
        m_faint.push_back(m_rows.size());
        add(std::move(row));
    }

    [[nodiscard]] std::string text(const Paint& paint) const
    {
        std::vector<std::size_t> widths(m_rows.front().size(), 0);
        for (const auto& row : m_rows)
            for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
        std::string out;
        for (std::size_t i = 0; i < m_rows.size(); ++i) {
            const std::string line = line_of(m_rows[i], widths);
            const bool is_faint = i == 0 || std::ranges::binary_search(m_faint, i);
            out += (is_faint ? paint.faint(line) : line) + '\n';
        }
        return out;
    }

private:
    static std::string line_of(const std::vector<std::string>& row, const std::vector<std::size_t>& widths)
    {
        std::string line = " ";
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += ' ' + row[i];
            if (i + 1 < row.size()) line.append(widths[i] - columns_of(row[i]) + 1, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        return line;
    }

    std::vector<std::vector<std::string>> m_rows;
    std::vector<std::size_t> m_faint; ///< ascending
};

/// Sections of a graph (readable_graph.cpp).
[[nodiscard]] std::string bindings_section(const Graph& graph, const Paint& paint);
[[nodiscard]] std::string images_section(const Graph& graph, const Paint& paint);
[[nodiscard]] std::string nodes_section(const Graph& graph, const Paint& paint);

} // namespace warmgraph::cachefmt
