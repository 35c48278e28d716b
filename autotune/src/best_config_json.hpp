// The JSON form of a tuned configuration, the same in the configuration's own file and in a module's file.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "warmgraph/autotune/best_config.hpp"

namespace warmgraph::autotune {

using Json = nlohmann::ordered_json; ///< keeps the members in the order in which people read them
using Parsed = nlohmann::json;       ///< finds a member quickly even in a hostile file

/// Returns the JSON form without the checksum.
[[nodiscard]] Json json_of(const BestConfig& best);
/// Reads the JSON form. Errors: the same as in decode(), but the order of members and additional members are not
/// checked.
[[nodiscard]] Result<BestConfig> best_config_of(const Parsed& json);

/// Returns the file's text: adds the checksum as the last member, indents the text, and adds a line end.
[[nodiscard]] std::string sealed(Json json);
/// Parses a file. `corrupt`: the file is empty, longer than `most`, or not JSON.
[[nodiscard]] Result<Parsed> parsed(ByteView bytes, std::uint64_t most);
/// Returns the error for a file that sealed() would write differently.
[[nodiscard]] Error not_as_written();

constexpr std::size_t k_longest_text = 1024;
/// Makes a text valid UTF-8 and short enough. A text that was corrected stays the same if it is corrected again.
[[nodiscard]] std::string mended(const std::string& text);

} // namespace warmgraph::autotune
