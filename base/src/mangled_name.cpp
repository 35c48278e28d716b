#include "mangled_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace warmgraph {
namespace {

struct Builtin {
    char letter;
    std::string_view name;
    std::optional<std::string_view> suffix{}; ///< the suffix of a literal; nullopt: the demangler writes a cast instead
};

constexpr auto k_builtins = std::to_array<Builtin>({
    {'b', "bool"},
    {'c', "char"},
    {'d', "double"},
    {'f', "float"},
    {'h', "unsigned char"},
    {'i', "int", ""},
    {'j', "unsigned int", "u"},
    {'l', "long", "l"},
    {'m', "unsigned long", "ul"},
    {'s', "short"},
    {'x', "long long", "ll"},
    {'y', "unsigned long long", "ull"},
});

class Reader {
public:
    explicit Reader(std::string_view text) : m_rest(text) {}

    [[nodiscard]] std::optional<std::string> name();

private:
    [[nodiscard]] bool take(std::string_view token);
    [[nodiscard]] std::string_view digits();
    /// Reads a length and that many bytes.
    [[nodiscard]] std::optional<std::string_view> identifier();
    [[nodiscard]] bool component(std::string& out);
    [[nodiscard]] const Builtin* builtin();
    /// Reads a number or a builtin type; nullopt for anything else.
    [[nodiscard]] std::optional<std::string> argument();
    [[nodiscard]] std::string arguments();

    std::string_view m_rest;
};

bool Reader::take(std::string_view token)
{
    if (!m_rest.starts_with(token)) return false;
    m_rest.remove_prefix(token.size());
    return true;
}

std::string_view Reader::digits()
{
    const std::string_view found = m_rest.substr(0, m_rest.find_first_not_of("0123456789"));
    m_rest.remove_prefix(found.size());
    return found;
}

std::optional<std::string_view> Reader::identifier()
{
    const std::string_view number = digits();
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), length);
    if (error != std::errc{} || length == 0 || length > m_rest.size()) return std::nullopt;
    const std::string_view found = m_rest.substr(0, length);
    m_rest.remove_prefix(length);
    return found;
}

/// Appends a namespace or the function's name.
bool Reader::component(std::string& out)
{
    static_cast<void>(take("L")); // marks internal linkage
    const auto found = identifier();
    if (!found) return false;
    while (take("B")) // ABI tags
        if (!identifier()) return false;
    if (found->starts_with("_GLOBAL__N")) return true; // an anonymous namespace
    if (!out.empty()) out += "::";
    out += *found;
    return true;
}

const Builtin* Reader::builtin()
{
    const auto* const found = std::ranges::find(k_builtins, m_rest.empty() ? '\0' : m_rest[0], &Builtin::letter);
    if (found == k_builtins.end()) return nullptr;
    m_rest.remove_prefix(1);
    return found;
}

std::optional<std::string> Reader::argument()
{
    if (!take("L")) {
        const Builtin* const type = builtin();
        return type != nullptr ? std::optional<std::string>{type->name} : std::nullopt;
    }
    if (take("b0E")) return "false";
    if (take("b1E")) return "true";
    const Builtin* const type = builtin();
    if (type == nullptr || !type->suffix) return std::nullopt;
    std::string text{take("n") ? "-" : ""};
    text += digits();
    return take("E") ? std::optional{text += *type->suffix} : std::nullopt;
}

std::string Reader::arguments()
{
    std::string out = "<";
    for (int count = 0; !take("E"); ++count) {
        if (count > 0) out += ", ";
        const auto one = count < 2 ? argument() : std::nullopt;
        if (!one) return out + "...>";
        out += *one;
    }
    return out + ">";
}

std::optional<std::string> Reader::name()
{
    if (!take("_Z")) return std::nullopt;
    const bool is_nested = take("N");
    std::string out{is_nested && take("St") ? "std" : ""};
    do {
        if (!component(out)) return std::nullopt;
    } while (is_nested && !m_rest.starts_with('I') && !m_rest.starts_with('E'));
    if (out.empty()) return std::nullopt;
    return take("I") ? out + arguments() : out;
}

} // namespace

std::optional<std::string> beginning_of_mangled(std::string_view mangled) { return Reader{mangled}.name(); }

} // namespace warmgraph
