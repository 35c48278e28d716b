// A call that no entry could serve, with its differences. A function's last misses are in `misses.jsonl` beside its
// entries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/sha256.hpp"

namespace warmgraph::store {

enum class MissEnd : std::uint8_t {
    ran,      ///< the function ran uncached
    recorded, ///< the function ran and was recorded
    refused,  ///< the function ran uncached, because it cannot be recorded or replayed
    thrown,   ///< the call threw: policy require_hit, or a function without a callable
    replayed, ///< another process recorded the function meanwhile
    compiled, ///< a program's miss: the program was compiled
};
[[nodiscard]] std::string_view to_string(MissEnd end) noexcept; ///< "ran as it is", "recorded", ...

/// A fact that differs in the nearest variant. A copy of guards::Mismatch.
struct MissedFact {
    std::string fact, recorded, now, cure;
};

struct Miss {
    std::string id;   ///< id of this miss; a later miss with the same id replaces it
    std::string time; ///< ISO 8601, UTC
    std::string host;
    std::uint64_t process = 0;
    std::string policy; ///< "read_write"
    std::string reason; ///< the reason, in the same text as in the log
    MissEnd end = MissEnd::ran;
    Digest call{};                         ///< digest of the call's guards
    std::uint64_t variants = 0;            ///< variants on disk that could be read at that time
    std::optional<Digest> nearest{};       ///< the variant with the fewest differences; of several, the most recent
    std::vector<MissedFact> differences{}; ///< the first k_most_missed_facts differences
    std::uint64_t more = 0;                ///< number of further differences
    std::uint64_t agree = 0;               ///< number of facts that agree
    /// For a refused function: the number of calls of this process that ran uncached; 0: one call, not counted
    std::uint64_t calls = 0;
    std::string program{}; ///< the name of a program that had to be compiled; empty for a call
};

struct Misses {
    std::vector<Miss> list{};  ///< newest first, at most k_most_misses
    std::string newest_call{}; ///< the guards of the newest miss's call, from guards::to_json; "": not kept
};

inline constexpr std::size_t k_most_misses = 16, k_most_missed_facts = 32;

/// Puts `miss` in front, replaces an older miss with the same id, and drops the oldest misses over k_most_misses.
void add_miss(std::vector<Miss>& list, Miss miss);

} // namespace warmgraph::store
