#include "include_scanner.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace warmgraph::precompile {
namespace {

constexpr std::array<std::string_view, 4> k_directives{"include", "include_next", "import", "embed"};

bool is_word(char letter) noexcept { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

/// Joins lines that end with a backslash.
std::string spliced(std::string_view text)
{
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view rest = text.substr(i);
        if (rest.starts_with("\\\n"))
            i += 1;
        else if (rest.starts_with("\\\r\n"))
            i += 2;
        else
            result += text[i];
    }
    return result;
}

/// Returns the position behind blanks and /* comments */ of the same directive.
std::size_t skip_blanks(std::string_view text, std::size_t at)
{
    while (at < text.size()) {
        if (text[at] == ' ' || text[at] == '\t' || text[at] == '\v' || text[at] == '\f') {
            ++at;
        } else if (text.substr(at).starts_with("/*")) {
            const std::size_t end = text.find("*/", at + 2);
            if (end == std::string_view::npos) return text.size();
            at = end + 2;
        } else {
            break;
        }
    }
    return at;
}

/// Returns the length of a hash sign at `at`, including C's digraph and trigraph; 0 when there is none.
std::size_t hash_at(std::string_view text, std::size_t at)
{
    for (const std::string_view spelling : {"#", "%:", "?\?="}) // written "?\?=" to avoid a trigraph in this file
        if (text.substr(at).starts_with(spelling)) return spelling.size();
    return 0;
}

/// Returns the position of the operand of an include directive behind a '#'; npos for other directives.
std::size_t operand_of(std::string_view text, std::size_t at)
{
    at = skip_blanks(text, at);
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    return std::ranges::find(k_directives, word) != k_directives.end() ? skip_blanks(text, end)
                                                                       : std::string_view::npos;
}

void add(std::vector<std::string>& names, std::string_view name)
{
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

/// Returns a header's name with its quotes or angle brackets if the name ends on its line, or else an empty text.
std::string_view name_at(std::string_view text, std::size_t at)
{
    if (at >= text.size() || (text[at] != '"' && text[at] != '<')) return {};
    const std::size_t end = text.find(text[at] == '"' ? '"' : '>', at + 1);
    if (end == std::string_view::npos || text.substr(at, end - at).contains('\n')) return {};
    return text.substr(at + 1, end - at - 1);
}

/// Adds the names in __has_include, because a new file with such a name changes the compiled code.
void add_asked_for(std::string_view text, std::vector<std::string>& names)
{
    for (const std::string_view question : {"__has_include", "__has_embed"})
        for (std::size_t at = text.find(question); at != std::string_view::npos; at = text.find(question, at + 1)) {
            std::size_t next = at + question.size();
            while (next < text.size() && is_word(text[next])) ++next; // the word may be __has_include_next
            next = skip_blanks(text, next);
            if (next < text.size() && text[next] == '(') add(names, name_at(text, skip_blanks(text, next + 1)));
        }
}

/// Finds out whether a '#' without a name behind it is code and is the first code on its line. Skips comments and
/// literals before the '#'. Unusual texts count as code.
class CodePlaces {
public:
    explicit CodePlaces(std::string_view text) : m_text(text) {}

    [[nodiscard]] bool is_directive(std::size_t at)
    {
        while (m_at < at) step();
        return m_at == at && m_is_first;
    }

private:
    void step()
    {
        const std::string_view rest = m_text.substr(m_at);
        if (rest.starts_with("//")) return skip_to(m_text.find('\n', m_at));
        if (rest.starts_with("/*")) {
            const std::size_t end = m_text.find("*/", m_at + 2);
            return skip_to(end == std::string_view::npos ? end : end + 2);
        }
        const char letter = m_text[m_at];
        if (letter == '\n')
            m_is_first = true;
        else if (letter != ' ' && letter != '\t' && letter != '\r')
            m_is_first = false;
        const bool is_behind_word = m_at > 0 && is_word(m_text[m_at - 1]); // the quote is then a digit separator: 1'000
        if (letter == '"' || (letter == '\'' && !is_behind_word)) return skip_literal(letter);
        ++m_at;
    }
    void skip_literal(char quote)
    {
        for (++m_at; m_at < m_text.size() && m_text[m_at] != '\n'; ++m_at) {
            if (m_text[m_at] == '\\')
                ++m_at;
            else if (m_text[m_at] == quote)
                break;
        }
        if (m_at < m_text.size() && m_text[m_at] == quote) ++m_at;
    }
    void skip_to(std::size_t at) { m_at = std::min(at, m_text.size()); }

    std::string_view m_text;
    std::size_t m_at = 0;
    bool m_is_first = true; ///< whether only blanks and comments precede the present position on its line
};

} // namespace

Includes scan_includes(std::string_view given)
{
    std::string joined;
    std::string_view text = given;
    if (given.find('\\') != std::string_view::npos) {
        joined = spliced(given);
        text = joined;
    }
    Includes found;
    CodePlaces places(text);
    for (std::size_t at = text.find_first_of("#%?"); at != std::string_view::npos;
         at = text.find_first_of("#%?", at + 1)) {
        const std::size_t letters = hash_at(text, at);
        if (letters == 0) continue;
        const std::size_t operand = operand_of(text, at + letters);
        if (operand >= text.size()) continue;
        if (const std::string_view name = name_at(text, operand); !name.empty())
            add(found.names, name);
        else if (found.computed.empty() && places.is_directive(at))
            found.computed =
                text.substr(at, std::min({text.find('\n', operand) - at, text.size() - at, std::size_t{80}}));
    }
    add_asked_for(text, found.names);
    // The assembler's directive that includes a file.
    if (found.computed.empty() && text.contains(".incbin")) found.computed = ".incbin";
    return found;
}

} // namespace warmgraph::precompile
