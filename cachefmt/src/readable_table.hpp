// What the sections of the text form share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// Rows of cells, each column as wide as its widest cell; no blanks at the end of a line.
class Table {
public:
    explicit Table(std::vector<std::string> header) { m_rows.push_back(std::move(header)); }
    void add(std::vector<std::string> row) { m_rows.push_back(std::move(row)); }

    [[nodiscard]] std::string text() const
    {
        std::vector<std::size_t> widths(m_rows.front().size(), 0);
        for (const auto& row : m_rows)
            for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
        std::string out;
        for (const auto& row : m_rows) {
            std::string line = " ";
            for (std::size_t i = 0; i < row.size(); ++i) {
                line += ' ' + row[i];
                if (i + 1 < row.size()) line.append(widths[i] - columns(row[i]) + 1, ' ');
            }
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + '\n';
        }
        return out;
    }

private:
    /// Terminal columns of a text that went through printable(): its code points.
    static std::size_t columns(std::string_view text)
    {
        return static_cast<std::size_t>(
            std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
    }

    std::vector<std::vector<std::string>> m_rows;
};

inline std::string counted(std::size_t number, std::string_view what)
{
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

/// Bindings, images and nodes of a graph (readable_graph.cpp).
[[nodiscard]] std::string graph_sections(const Graph& graph);

} // namespace warmgraph::cachefmt
