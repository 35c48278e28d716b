// The search for the fastest configuration, over a workbench that builds, runs and times. It knows no device.
//
// Why it does not believe a single number: times on a shared machine jump by tens of percent. Configurations are timed in
// rounds, one after the other, so that a slow phase of the machine meets all of them; each one's time is the median of its
// rounds; and what is not faster than the default by `min_gain` is not chosen over it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/base/clock.hpp"

namespace warmgraph::autotune {

/// What a search asks of a device. One thread.
class Workbench {
public:
    virtual ~Workbench() = default;
    /// Builds it, runs it once and waits. Its error is a finding: this configuration cannot win.
    [[nodiscard]] virtual Result<void> prepare(const Configuration& config) = 0;
    /// How its results differ from the default's, beyond what is tolerated; nullopt: they do not. The default is prepared.
    [[nodiscard]] virtual Result<std::optional<std::string>> difference(const Configuration& config) = 0;
    /// Milliseconds of one run, measured once. It is prepared.
    [[nodiscard]] virtual Result<double> time(const Configuration& config) = 0;
};

struct SearchRules {
    std::uint32_t rounds = 7;      ///< measurements of each configuration; at least 1
    double min_gain = 0.03;        ///< what a configuration must save of the time to be chosen over another, 0 to 1
    double drop_above = 1.5;       ///< what took so many times the best in two rounds is timed no more
    std::uint32_t most_steps = 64; ///< configurations that descent tries
};

struct Winner {
    Configuration config;
    FoundBy found_by = FoundBy::enumeration;
    std::vector<Timing> timings{}; ///< the default first
    double took_ms = 0;
};

/// Times all candidates. An error is the default's own, which has nothing to be held to.
[[nodiscard]] Result<Winner> enumerate(Workbench& bench, const Space& space, const SearchRules& rules,
                                       const Clock& clock);

/// From `start` one parameter at a time, to the next value that is faster, until none is. `start.timings` are carried on.
/// Where `start` does not run here, or gives other results, the default is where it begins.
[[nodiscard]] Result<Winner> descend(Workbench& bench, const Space& space, const SearchRules& rules, const Clock& clock,
                                     Winner start);

} // namespace warmgraph::autotune
