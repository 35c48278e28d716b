// misses.jsonl: the guards of the newest missed call, then one line for each miss, oldest first. Advisory.
#pragma once

#include <optional>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::store {

inline constexpr std::uint64_t k_miss_file_cap = 2ULL << 20; ///< bytes; a larger file is not read

/// Returns the file's text. Cuts texts that are too long. Replaces bytes that are not UTF-8 by U+FFFD.
[[nodiscard]] std::string to_miss_lines(const Misses& misses);
/// Parses the file's bytes. `corrupt` says which line is wrong first, and why.
[[nodiscard]] Result<Misses> parse_misses(ByteView bytes);

} // namespace warmgraph::store
