// Searches for the fastest configuration. A Workbench builds, runs and times the configurations; the search itself
// knows no device.
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

/// The operations that a search needs from a device. Only one thread uses it.
class Workbench {
public:
    virtual ~Workbench() = default;
    /// Builds the configuration, runs it once and waits. An error means that this configuration cannot win.
    [[nodiscard]] virtual Result<void> prepare(const Configuration& config) = 0;
    /// Returns how the configuration's results differ from the default's results by more than the tolerance; nullopt:
    /// they agree. REQUIRES: both configurations are prepared.
    [[nodiscard]] virtual Result<std::optional<std::string>> difference(const Configuration& config) = 0;
    /// Measures one run, in milliseconds. REQUIRES: the configuration is prepared.
    [[nodiscard]] virtual Result<double> time(const Configuration& config) = 0;
};

struct SearchRules {
    std::uint32_t rounds = 7; ///< number of measurements of each configuration; at least 1
    double min_gain = 0.03;   ///< a configuration is chosen only if it saves at least this share of the time, 0 to 1
    double drop_above = 1.5;  ///< a configuration that is this many times slower than the best in two rounds is dropped
    std::uint32_t most_steps = 64; ///< the most configurations that descent tries
};

struct Winner {
    Configuration config;
    FoundBy found_by = FoundBy::enumeration;
    std::vector<Timing> timings{}; ///< timings of the configurations that were tried, the default first
    double took_ms = 0;
};

/// Times all candidates. Returns an error only if the default fails, because then there are no results for a
/// comparison.
[[nodiscard]] Result<Winner> enumerate(Workbench& bench, const Space& space, const SearchRules& rules,
                                       const Clock& clock);

/// Begins at `start` and changes one parameter at a time to a neighbouring value that is faster, until no neighbour is
/// faster. Keeps `start.timings`. Begins at the default if `start` does not run here or gives wrong results.
[[nodiscard]] Result<Winner> descend(Workbench& bench, const Space& space, const SearchRules& rules, const Clock& clock,
                                     Winner start);

} // namespace warmgraph::autotune
