// The JSON form of a tuned configuration, shared by its own file and a module's file.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "warmgraph/autotune/best_config.hpp"

namespace warmgraph::autotune {

using Json = nlohmann::ordered_json; ///< keeps the members in an order for readers
using Parsed = nlohmann::json;       ///< finds a member quickly even in a hostile file

/// Without the checksum.
[[nodiscard]] Json json_of(const BestConfig& best);
/// Errors as in decode(), but the order of members and extra members are not checked.
[[nodiscard]] Result<BestConfig> best_config_of(const Parsed& json);

/// Adds the checksum as the last member, indents, and ends with a line end.
[[nodiscard]] std::string sealed(Json json);
/// `corrupt`: empty, longer than `most`, or not JSON.
[[nodiscard]] Result<Parsed> parsed(ByteView bytes, std::uint64_t most);
/// The error for a file that sealed() would write differently.
[[nodiscard]] Error not_as_written();

constexpr std::size_t k_longest_text = 1024;
/// Makes a text valid UTF-8 and short enough. A corrected text stays the same when corrected again.
[[nodiscard]] std::string mended(const std::string& text);

} // namespace warmgraph::autotune
