// Text output: colours, tables, sizes and times.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/units.hpp"

namespace warmgraph::tool {

enum class Colour : std::uint8_t { plain, bold, red, green, yellow };

/// Paints text, or leaves it plain.
struct Style {
    bool colours = false;
    [[nodiscard]] std::string paint(Colour colour, std::string_view text) const;
};

/// Returns the style. `wish`: "always", "never" or "auto" (if standard output takes escapes and NO_COLOR is empty,
/// no-color.org).
[[nodiscard]] Style style_of(std::string_view wish);

/// Whether the descriptor is a terminal that knows escape sequences (from TERM).
[[nodiscard]] bool takes_escapes(int descriptor);

/// The width of the terminal at standard output; nullopt when it is not a terminal or has no width.
[[nodiscard]] std::optional<std::size_t> terminal_columns() noexcept;

/// A table whose columns are as wide as their widest cell, two blanks apart. Makes cells printable.
class Table {
public:
    enum class Align : std::uint8_t { left, right };
    struct Column {
        std::string title;
        Align align = Align::left;
    };
    /// `most`: the most bytes of a cell; the end of a longer cell is cut, because names may be hostile.
    explicit Table(std::vector<Column> columns, std::size_t indent = 0, std::size_t most = 72)
        : m_columns(std::move(columns)), m_indent(indent), m_most(most)
    {
    }
    void add(std::vector<std::string> row);
    [[nodiscard]] std::string text(const Style& style) const;

private:
    std::vector<Column> m_columns;
    std::vector<std::vector<std::string>> m_rows;
    std::size_t m_indent, m_most;
};

/// Returns e.g. "2 min ago"; "in the future" when the clock was set back.
[[nodiscard]] std::string ago_text(std::chrono::system_clock::time_point then,
                                   std::chrono::system_clock::time_point now);

} // namespace warmgraph::tool
