#include "warmgraph/base/printable.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace warmgraph {
namespace {

/// Returns the length of the UTF-8 sequence at the start of `text`; 0 if it is not valid (RFC 3629: shortest form, no
/// surrogates).
std::size_t utf8_length(std::string_view text) noexcept
{
    const auto byte = [&](std::size_t i) -> unsigned { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : (lead & 0xF0) == 0xE0       ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) >= 0xA0) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) >= 0x90) return 0;
    return length;
}

/// Decodes a sequence that utf8_length() accepts.
char32_t code_point(std::string_view sequence) noexcept
{
    constexpr unsigned k_lead_bits[]{0x7F, 0x1F, 0x0F, 0x07};
    char32_t point = static_cast<unsigned char>(sequence[0]) & k_lead_bits[sequence.size() - 1];
    for (const char c : sequence.substr(1)) point = point << 6U | (static_cast<unsigned char>(c) & 0x3FU);
    return point;
}

struct Range {
    char32_t first, last;
};

bool is_among(char32_t point, std::span<const Range> ranges) noexcept
{
    return std::ranges::any_of(ranges, [point](Range range) { return point >= range.first && point <= range.last; });
}

constexpr Range k_controls[]{{0x00, 0x1F}, {0x7F, 0x9F}}; // the controls C0 and C1: some terminals act on C1 too

/// Invisible format characters and separators of Unicode (Cf, Zl, Zp), which change how the rest of the text is shown.
constexpr Range k_invisible[]{{0xAD, 0xAD},       {0x061C, 0x061C},   {0x180E, 0x180E},  {0x200B, 0x200F},
                              {0x2028, 0x202E},   {0x2060, 0x206F},   {0xFEFF, 0xFEFF},  {0xFFF9, 0xFFFB},
                              {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE007F}};

bool is_shown(std::string_view sequence) noexcept
{
    const char32_t point = code_point(sequence);
    return !is_among(point, k_controls) && !is_among(point, k_invisible);
}

} // namespace

std::string printable(std::string_view text, std::size_t limit)
{
    std::string out;
    while (!text.empty()) {
        if (out.size() >= limit) return out + "...";
        const std::size_t length = utf8_length(text);
        const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
        if (length == 0 || !is_shown(sequence)) {
            for (const char c : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
            out += sequence;
        }
        text.remove_prefix(sequence.size());
    }
    return out;
}

std::string printable_lines(std::string_view text, std::size_t limit)
{
    std::string out;
    for (;;) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        out += printable(text.substr(0, end), limit);
        if (end == text.size()) return out;
        out += '\n';
        text.remove_prefix(end + 1);
    }
}

bool is_plain(std::string_view text) noexcept
{
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0 || is_among(code_point(text.substr(0, length)), k_controls)) return false;
        text.remove_prefix(length);
    }
    return true;
}

} // namespace warmgraph
