// Tokens are bytes. A story ends with a newline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

inline constexpr std::int32_t k_end_of_story = '\n';

[[nodiscard]] std::vector<std::int32_t> encode(std::string_view text);
/// Ids outside 0 .. 255 are dropped: they have no byte.
[[nodiscard]] std::string decode(const std::vector<std::int32_t>& tokens);

} // namespace llm
