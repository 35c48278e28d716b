// A tuned configuration as JSON: what its own file and a module's have in common.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "warmgraph/autotune/best_config.hpp"

namespace warmgraph::autotune {

using Json = nlohmann::ordered_json; ///< written in the order in which people read
using Parsed = nlohmann::json;       ///< which looks a member up without walking over all of a hostile file's

/// Without a checksum.
[[nodiscard]] Json json_of(const BestConfig& best);
/// `corrupt` and `stale` as decode() has them, but for the form: members may be more, or stand elsewhere.
[[nodiscard]] Result<BestConfig> best_config_of(const Parsed& json);

/// Indented, with its checksum as the last member and a line end.
[[nodiscard]] std::string sealed(Json json);
/// `corrupt`: no bytes, more than `most`, no JSON.
[[nodiscard]] Result<Parsed> parsed(ByteView bytes, std::uint64_t most);
/// Of a file that sealed() would have made otherwise.
[[nodiscard]] Error not_as_written();

constexpr std::size_t k_longest_text = 1024;
/// A text that is UTF-8 and at most so long: what was mended stays as it is.
[[nodiscard]] std::string mended(const std::string& text);

} // namespace warmgraph::autotune
