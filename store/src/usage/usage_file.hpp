// usage.json: how often a function was hit, missed, recorded and refused. Advisory: nothing depends on it.
#pragma once

#include <optional>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/store/function_usage.hpp"

namespace warmgraph::store {

inline constexpr std::uint64_t k_usage_cap = 4ULL << 20; ///< bytes of a usage file; a larger one counts as damaged

[[nodiscard]] std::string to_usage_json(const FunctionUsage& usage);
/// Returns nullopt when the bytes are not a usage file: not a JSON object, a member of another type, or a negative
/// count.
[[nodiscard]] std::optional<FunctionUsage> parse_usage(ByteView bytes);
/// Adds the counts; keeps the later last use, and the newer phase times.
void merge(FunctionUsage& into, const FunctionUsage& more);

} // namespace warmgraph::store
