// A call that no entry could serve, as it was judged then. A function's last misses lie in `misses.jsonl` beside its
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
    ran,      ///< the function ran as it is
    recorded, ///< and was recorded
    refused,  ///< it ran as it is, and cannot be recorded or replayed
    thrown,   ///< the call threw: policy require_hit, or a function without a callable
    replayed, ///< another process recorded it meanwhile
    compiled, ///< of a program: it was compiled
};
[[nodiscard]] std::string_view to_string(MissEnd end) noexcept; ///< "ran as it is", "recorded", ...

/// A fact that the nearest variant has otherwise. guards::Mismatch, as it was then.
struct MissedFact {
    std::string fact, recorded, now, cure;
};

struct Miss {
    std::string id;   ///< of this miss: what is noted again under it replaces what was noted
    std::string time; ///< ISO 8601, UTC
    std::string host;
    std::uint64_t process = 0;
    std::string policy; ///< "read_write"
    std::string reason; ///< as in the log
    MissEnd end = MissEnd::ran;
    Digest call{};                         ///< of the call's guards
    std::uint64_t variants = 0;            ///< that could be read on disk then
    std::optional<Digest> nearest{};       ///< the variant with the fewest differences, the most recent of several
    std::vector<MissedFact> differences{}; ///< the first k_most_missed_facts of them
    std::uint64_t more = 0;                ///< further differences
    std::uint64_t agree = 0;               ///< facts that agree
    std::uint64_t calls = 0; ///< of a function that its caller refuses: calls of this process that ran as they are for
                             ///< that reason; 0: one, which was not counted
    std::string program{};   ///< of a program that had to be compiled, its name; empty for a call
};

struct Misses {
    std::vector<Miss> list{}; ///< newest first, at most k_most_misses
    std::string
        newest_call{}; ///< the guards of the newest one's call, as guards::to_json gives them; "" where not kept
};

inline constexpr std::size_t k_most_misses = 16, k_most_missed_facts = 32;

/// Puts `miss` in front, in the place of one with its id where there is one, and drops what is too old.
void add_miss(std::vector<Miss>& list, Miss miss);

} // namespace warmgraph::store
