// misses.jsonl: a line for the newest missed call's guards, then a line for each miss, oldest first. Advisory, like
// usage.json.
#pragma once

#include <optional>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::store {

inline constexpr std::uint64_t k_miss_file_cap = 2ULL << 20; ///< bytes; a larger one is not read

/// Texts that are too long are cut. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string to_miss_lines(const Misses& misses);
/// `corrupt` names the first line that is wrong, and how.
[[nodiscard]] Result<Misses> parse_misses(ByteView bytes);

} // namespace warmgraph::store
