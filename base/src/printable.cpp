#include "warmgraph/base/printable.hpp"

#include <fmt/format.h>

namespace warmgraph {
namespace {

/// Length of the UTF-8 sequence that starts `text`, 0 when it is none (RFC 3629: shortest form, no surrogates).
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

bool is_control(std::string_view sequence) noexcept
{
    const auto first = static_cast<unsigned char>(sequence[0]);
    if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
    return first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0; // C1: some terminals act on them
}

} // namespace

std::string printable(std::string_view text, std::size_t limit)
{
    std::string out;
    while (!text.empty()) {
        if (out.size() >= limit) return out + "...";
        const std::size_t length = utf8_length(text);
        const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
        if (length == 0 || is_control(sequence)) {
            for (const char c : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
            out += sequence;
        }
        text.remove_prefix(sequence.size());
    }
    return out;
}

} // namespace warmgraph
