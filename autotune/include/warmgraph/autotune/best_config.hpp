// The file format of a tuned configuration: `.best_config`, JSON that people can read (docs/format.md).
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

/// The measured time of one configuration.
struct Timing {
    Configuration config;
    double ms = 0;            ///< median time of one run; 0 when it was not timed
    std::uint64_t rounds = 0; ///< number of measurements behind the median
    std::string failed{};     ///< why it cannot win: it does not build, does not launch, or gives other results
    bool operator==(const Timing&) const = default;
};

using Facts = std::map<std::string, std::string>;

struct BestConfig {
    std::string kernel;
    Digest key;          ///< identifies code, problem and device; names the file
    Digest configs_hash; ///< hash of the candidates
    Configuration config;
    FoundBy found_by = FoundBy::enumeration;
    double took_ms = 0;                            ///< the whole tuning
    std::vector<Timing> timings;                   ///< of all tried configurations, the default first
    std::map<std::string, std::int64_t> problem{}; ///< for people; `key` covers it
    Facts device{};                                ///< for people; `key` covers it
    Facts driver{};                                ///< versions that the winner depends on; not part of the key
    std::string written{};                         ///< ISO 8601, UTC
    /// The kept programs of the default and the winner: key, and the part of took_ms that compiling it took. Programs
    /// that were not compiled during this tuning are left out.
    std::vector<std::pair<Digest, double>> programs{};
    bool operator==(const BestConfig&) const = default;
};

/// The timing of a configuration; null when it was not tried.
[[nodiscard]] const Timing* timing_of(const std::vector<Timing>& timings, const Configuration& config) noexcept;
/// The default's time divided by the winner's; 1 when one of them was not timed.
[[nodiscard]] double gain(const BestConfig& best) noexcept;

/// The same value gives the same bytes. Texts that are not UTF-8 or longer than 1 KiB are corrected.
[[nodiscard]] std::string encode(const BestConfig& best);
/// `corrupt`: not exactly encode()'s format, a wrong checksum, or larger than the cap. `stale`: another format version.
[[nodiscard]] Result<BestConfig> decode(ByteView bytes);

} // namespace warmgraph::autotune
