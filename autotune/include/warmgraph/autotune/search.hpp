// Searches the fastest configuration. A Workbench builds, runs and times; the search knows no device.
//
// Times on a shared machine vary by tens of percent, so single measurements are not trusted. Configurations are timed
// in rounds, one after the other, so that a slow phase affects all of them. A configuration's time is the median of its
// rounds. A configuration wins against the default only if it is faster by `min_gain`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/base/clock.hpp"

namespace warmgraph::autotune {

/// The operations that a search needs from a device. Used by one thread.
class Workbench {
public:
    virtual ~Workbench() = default;
    /// Builds the configuration, runs it once and waits. An error means that this configuration cannot win.
    [[nodiscard]] virtual Result<void> prepare(const Configuration& config) = 0;
    /// How its results differ from the default's beyond the tolerance; nullopt: they agree. REQUIRES: both are
    /// prepared.
    [[nodiscard]] virtual Result<std::optional<std::string>> difference(const Configuration& config) = 0;
    /// Measures one run, in milliseconds. REQUIRES: it is prepared.
    [[nodiscard]] virtual Result<double> time(const Configuration& config) = 0;
};

struct SearchRules {
    std::uint32_t rounds = 7; ///< measurements of each configuration; at least 1
    double min_gain = 0.03;   ///< the share of the time that a configuration must save to be chosen, 0 to 1
    double drop_above = 1.5;  ///< stop timing a configuration that took this many times the best time in two rounds
    std::uint32_t most_steps = 64; ///< the most configurations that descent tries
};

struct Winner {
    Configuration config;
    FoundBy found_by = FoundBy::enumeration;
    std::vector<Timing> timings{}; ///< the default first
    double took_ms = 0;
};

/// Times all candidates. Returns an error only when the default fails, because there are no results to compare with.
[[nodiscard]] Result<Winner> enumerate(Workbench& bench, const Space& space, const SearchRules& rules,
                                       const Clock& clock);

/// Moves from `start`, one parameter at a time, to the next faster value until no value is faster. Keeps
/// `start.timings`. Begins at the default if `start` does not run here or gives other results.
[[nodiscard]] Result<Winner> descend(Workbench& bench, const Space& space, const SearchRules& rules, const Clock& clock,
                                     Winner start);

} // namespace warmgraph::autotune
