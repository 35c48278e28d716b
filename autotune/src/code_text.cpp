#include "warmgraph/autotune/code_text.hpp"

#include <algorithm>

namespace warmgraph::autotune {
namespace {

bool is_digit_char(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_word_char(char c) noexcept
{
    return is_digit_char(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class CommentCutter {
public:
    explicit CommentCutter(std::string_view source) : m_source(source) {}

    std::string run()
    {
        while (m_at < m_source.size()) step();
        end_line();
        if (!m_text.empty() && !m_text.ends_with('\n')) m_text += '\n'; // the language requires a line end
        return std::move(m_text);
    }

private:
    void step()
    {
        const char c = m_source[m_at];
        if (is_include()) return keep_line();
        if (starts_with("//")) return cut(line_comment_end());
        if (starts_with("/*")) {
            const auto end = m_source.find("*/", m_at + 2);
            // Text without the end of its comment stays: the compiler will report it.
            return end == std::string_view::npos ? keep(m_source.size() - m_at) : cut(end + 2);
        }
        if (c == '"') return keep(m_word == "R" || m_word.ends_with("R") ? raw_length() : literal_length(c));
        if (c == '\'' && !is_separator()) return keep(literal_length(c));
        keep(1);
    }

    [[nodiscard]] bool starts_with(std::string_view text) const noexcept
    {
        return m_source.substr(m_at).starts_with(text);
    }
    /// Whether an #include begins here. Its line stays unchanged, because a header's name may contain "//" or "/*".
    [[nodiscard]] bool is_include() const
    {
        if (m_source[m_at] != '#' || m_line.find_first_not_of(" \t") != std::string::npos) return false;
        const std::string_view rest = m_source.substr(m_at + 1);
        const auto name = rest.find_first_not_of(" \t");
        return name != std::string_view::npos && rest.substr(name).starts_with("include");
    }
    void keep_line()
    {
        const auto end = m_source.find('\n', m_at);
        keep(std::min(end, m_source.size()) - m_at);
    }
    /// Whether the quote is a digit separator, as in 1'000.
    [[nodiscard]] bool is_separator() const noexcept
    {
        return !m_word.empty() && is_digit_char(m_word.front()) && m_at + 1 < m_source.size() &&
               is_word_char(m_source[m_at + 1]);
    }
    /// Returns the length of a literal with its quotes. A literal ends at the end of the line at the latest.
    [[nodiscard]] std::size_t literal_length(char quote) const
    {
        std::size_t end = m_at + 1;
        while (end < m_source.size() && m_source[end] != quote && m_source[end] != '\n')
            end += m_source[end] == '\\' ? 2 : 1;
        end = std::min(end, m_source.size());
        return (end < m_source.size() && m_source[end] == quote ? end + 1 : end) - m_at;
    }
    /// Returns the length of a raw literal: R"delimiter( ... )delimiter".
    [[nodiscard]] std::size_t raw_length() const
    {
        const auto open = m_source.find('(', m_at);
        if (open == std::string_view::npos) return m_source.size() - m_at;
        const std::string close = ")" + std::string(m_source.substr(m_at + 1, open - m_at - 1)) + "\"";
        const auto end = m_source.find(close, open);
        return (end == std::string_view::npos ? m_source.size() : end + close.size()) - m_at;
    }
    /// Returns the end of a // comment. If its line ends with a backslash, the comment goes on in the next line.
    [[nodiscard]] std::size_t line_comment_end() const
    {
        std::size_t end = m_source.find('\n', m_at);
        while (end != std::string_view::npos && continues(end)) end = m_source.find('\n', end + 1);
        return std::min(end, m_source.size());
    }
    [[nodiscard]] bool continues(std::size_t line_end) const noexcept
    {
        if (line_end > m_at && m_source[line_end - 1] == '\r') --line_end;
        return line_end > m_at && m_source[line_end - 1] == '\\';
    }

    void keep(std::size_t count)
    {
        for (const char c : m_source.substr(m_at, count)) {
            m_line += c;
            if (c == '\n') end_line();
            if (is_word_char(c) || (c == '\'' && count == 1))
                m_word += c;
            else
                m_word.clear();
        }
        m_at += count;
    }
    void cut(std::size_t end)
    {
        m_line += ' ';
        m_was_cut = true;
        m_word.clear();
        m_at = end;
    }
    /// Ends a line. If a comment was cut in it, also removes the blanks before the comment. If nothing is left, removes
    /// the line, unless the line ends a macro.
    void end_line()
    {
        if (m_was_cut) {
            const bool has_end = m_line.ends_with('\n');
            m_line.erase(m_line.find_last_not_of(" \t\r\n") + 1);
            if (has_end && (!m_line.empty() || m_text.ends_with("\\\n"))) m_line += '\n';
        }
        m_text += m_line;
        m_line.clear();
        m_was_cut = false;
    }

    std::string_view m_source;
    std::size_t m_at = 0;
    std::string m_text, m_line;
    std::string m_word; ///< the identifier or number before the present position
    bool m_was_cut = false;
};

} // namespace

std::string without_comments(std::string_view source) { return CommentCutter(source).run(); }

} // namespace warmgraph::autotune
