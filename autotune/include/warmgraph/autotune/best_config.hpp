// A tuned configuration as it is stored: `.best_config`, JSON that people can read (docs/format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/autotune/configuration.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::autotune {

inline constexpr std::uint64_t k_best_config_format = 1;
inline constexpr std::uint64_t k_best_config_cap = 4ULL << 20; ///< bytes of a file
inline constexpr std::size_t k_most_facts = 64;
inline constexpr std::size_t k_most_kept_programs = 16;

enum class FoundBy : std::uint8_t { enumeration, coordinate_descent };
[[nodiscard]] std::string_view to_string(FoundBy by) noexcept; ///< "enumeration", "coordinate_descent"

/// What one configuration took.
struct Timing {
    Configuration config;
    double ms = 0;            ///< median of one run; 0 where it was not timed
    std::uint64_t rounds = 0; ///< measurements that the median is of
    std::string failed{};     ///< why it cannot win: does not build, does not launch, gives other results
    bool operator==(const Timing&) const = default;
};

using Facts = std::map<std::string, std::string>;

struct BestConfig {
    std::string kernel;
    Digest key;          ///< what it was tuned for: code, problem and device; names the file
    Digest configs_hash; ///< of the candidates
    Configuration config;
    FoundBy found_by = FoundBy::enumeration;
    double took_ms = 0;                            ///< the whole tuning
    std::vector<Timing> timings;                   ///< of every configuration that was tried, the default first
    std::map<std::string, std::int64_t> problem{}; ///< for people: `key` covers it
    Facts device{};                                ///< the same
    Facts driver{};                                ///< versions that the winner depends on; the key leaves them out
    std::string written{};                         ///< ISO 8601, UTC
    /// Keys of the programs that are kept, the default's and the winner's, and what of took_ms compiling each was; those that
    /// were not compiled for it are left out.
    std::vector<std::pair<Digest, double>> programs{};
    bool operator==(const BestConfig&) const = default;
};

/// The timing of a configuration; null where it was not tried.
[[nodiscard]] const Timing* timing_of(const std::vector<Timing>& timings, const Configuration& config) noexcept;
/// How many times as fast the winner is as the default; 1 where one of them was not timed.
[[nodiscard]] double gain(const BestConfig& best) noexcept;

/// One spelling for each value: the same bytes at every call. Texts that are no UTF-8 or longer than 1 KiB are mended.
[[nodiscard]] std::string encode(const BestConfig& best);
/// `corrupt`: not exactly what encode() writes of any value, its checksum included; more than the cap. `stale`: another
/// format.
[[nodiscard]] Result<BestConfig> decode(ByteView bytes);

} // namespace warmgraph::autotune
