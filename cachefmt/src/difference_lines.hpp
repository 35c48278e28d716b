// Collects the lines of difference(), up to a limit, and counts the rest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

class DifferenceLines {
public:
    explicit DifferenceLines(std::size_t limit) : m_limit(limit) {}

    void line(std::string text);
    /// Adds the line "where: what recorded against now".
    void line(const std::string& where, std::string_view what, std::string_view recorded, std::string_view now);

    template <class T>
    void number(const std::string& where, std::string_view what, T recorded, T now)
    {
        if (recorded != now) line(where, what, fmt::format("{}", recorded), fmt::format("{}", now));
    }
    void text(const std::string& where, std::string_view what, const std::string& recorded, const std::string& now);
    /// Shows the bytes from the first one that differs.
    void bytes(const std::string& where, std::string_view what, const Bytes& recorded, const Bytes& now);
    void gone(const std::string& what) { line(what + " was recorded and is gone now"); }
    void added(const std::string& what) { line(what + " was not recorded and is there now"); }

    /// Returns the lines. If lines were left out, the last line counts them.
    [[nodiscard]] std::vector<std::string> finish() &&;

private:
    std::size_t m_limit;
    std::size_t m_total = 0;
    std::vector<std::string> m_lines;
};

/// Compares node `index` of both graphs.
void compare_nodes(DifferenceLines& lines, const Graph& recorded, const Graph& now, std::size_t index);

} // namespace warmgraph::cachefmt
