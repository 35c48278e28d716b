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
inline constexpr std::uint64_t k_best_config_cap = 4ULL << 20; ///< largest size of a file, in bytes
inline constexpr std::size_t k_most_facts = 64;
inline constexpr std::size_t k_most_kept_programs = 16;

enum class FoundBy : std::uint8_t { enumeration, coordinate_descent };
[[nodiscard]] std::string_view to_string(FoundBy by) noexcept; ///< returns "enumeration" or "coordinate_descent"

/// The measured time of one configuration.
struct Timing {
    Configuration config;
    double ms = 0;            ///< median time of one run; 0 if the configuration was not timed
    std::uint64_t rounds = 0; ///< number of measurements from which the median comes
    /// Why the configuration cannot win: it does not build, does not launch, or gives other results; empty: it can win.
    std::string failed{};
    bool operator==(const Timing&) const = default;
};

using Facts = std::map<std::string, std::string>;

struct BestConfig {
    std::string kernel;
    Digest key;          ///< identifies code, problem and device; it is the file's name
    Digest configs_hash; ///< hash of the candidates
    Configuration config;
    FoundBy found_by = FoundBy::enumeration;
    double took_ms = 0;                            ///< time of the whole tuning
    std::vector<Timing> timings;                   ///< timings of all configurations that were tried, the default first
    std::map<std::string, std::int64_t> problem{}; ///< for people; `key` covers the problem
    Facts device{};                                ///< for people; `key` covers the device
    Facts driver{};                                ///< versions that the winner depends on; not part of the key
    std::string written{};                         ///< ISO 8601, UTC
    /// The stored programs of the default and the winner: the program's key, and the part of took_ms that its
    /// compilation took. Programs that were not compiled during this tuning are left out.
    std::vector<std::pair<Digest, double>> programs{};
    bool operator==(const BestConfig&) const = default;
};

/// Returns the timing of a configuration; null if the configuration was not tried.
[[nodiscard]] const Timing* timing_of(const std::vector<Timing>& timings, const Configuration& config) noexcept;
/// Returns the default's time divided by the winner's time; 1 if one of them was not timed.
[[nodiscard]] double gain(const BestConfig& best) noexcept;

/// Writes the file's text. The same value gives the same bytes. Texts that are not UTF-8 or longer than 1 KiB are
/// corrected.
[[nodiscard]] std::string encode(const BestConfig& best);
/// Reads the file. `corrupt`: the bytes are not what encode() would write, the checksum is wrong, or the file is larger
/// than the cap. `stale`: the file has another format version.
[[nodiscard]] Result<BestConfig> decode(ByteView bytes);

} // namespace warmgraph::autotune
