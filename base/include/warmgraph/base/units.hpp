// Sizes, counts and nouns in the form for people, the same in messages, the log and the command.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warmgraph {

[[nodiscard]] std::string size_text(std::uint64_t bytes);  ///< "512 B", "41 KiB", "1.2 MiB": multiples of 1024
[[nodiscard]] std::string time_text(double milliseconds);  ///< "3.9 ms", "1.96 s"
[[nodiscard]] std::string count_text(std::uint64_t count); ///< "9 412"
/// Returns e.g. "1 variant", "2 variants", "1 entry", "2 entries", "3 misses".
[[nodiscard]] std::string plural(std::uint64_t count, std::string_view noun);

} // namespace warmgraph
