// Tables and quantities for people. ASCII; colour only when the caller asks for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

enum class Colour : std::uint8_t { plain, ansi };

/// Returns ansi when standard output is a terminal and NO_COLOR is not set (https://no-color.org).
[[nodiscard]] Colour colour_of_stdout();
[[nodiscard]] std::string strong(std::string_view text, Colour colour);

/// Returns e.g. "0.04 ms", "14.1 ms", "1 912.0 ms".
[[nodiscard]] std::string milliseconds(double value);
/// Returns e.g. "471 us", "14 801 us".
[[nodiscard]] std::string microseconds(double value);

/// The first column is aligned left, the others right.
class Table {
public:
    void row(std::vector<std::string> cells) { m_rows.push_back({std::move(cells), false}); }
    void strong_row(std::vector<std::string> cells) { m_rows.push_back({std::move(cells), true}); }
    void rule() { m_rows.push_back({}); } ///< a horizontal line
    [[nodiscard]] std::string text(Colour colour) const;

private:
    struct Row {
        std::vector<std::string> cells; ///< empty: a rule
        bool is_strong = false;
    };
    [[nodiscard]] std::vector<std::size_t> widths() const;

    std::vector<Row> m_rows;
};

} // namespace llm
