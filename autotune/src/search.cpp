#include "warmgraph/autotune/search.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace warmgraph::autotune {
namespace {

double median(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

/// A configuration with its measurements.
struct Runner {
    Configuration config;
    std::vector<double> times{};
    std::string failed{};

    [[nodiscard]] bool runs() const noexcept { return failed.empty(); }
    [[nodiscard]] double ms() const { return times.empty() || !runs() ? 0 : median(times); }
    /// Whether the configuration is so slow that timing it can stop. This needs two measurements, so that one slow
    /// moment of the machine does not count.
    [[nodiscard]] bool is_far_behind(double most) const
    {
        return times.size() >= 2 && *std::ranges::min_element(times) > most;
    }
    [[nodiscard]] Timing timing() const { return {config, ms(), times.size(), failed}; }
};

void measure(Workbench& bench, Runner& runner)
{
    if (!runner.runs()) return;
    const auto ms = bench.time(runner.config);
    if (!ms)
        runner.failed = ms.error().message;
    else if (!std::isfinite(*ms) || *ms <= 0)
        runner.failed = fmt::format("the timer gave {} ms", *ms);
    else
        runner.times.push_back(*ms);
}

/// Builds and runs a configuration and compares its results with the default's results.
Runner try_out(Workbench& bench, const Configuration& config)
{
    Runner runner{config};
    auto prepared = bench.prepare(config);
    if (!prepared) {
        runner.failed = prepared.error().message;
        return runner;
    }
    auto difference = bench.difference(config);
    if (!difference)
        runner.failed = difference.error().message;
    else if (*difference)
        runner.failed = "its results differ from the default's: " + **difference;
    return runner;
}

Result<Runner> begin_default(Workbench& bench, const Space& space)
{
    Runner runner{space.candidates.front()};
    if (auto prepared = bench.prepare(runner.config); !prepared)
        return within(fmt::format("the default configuration '{}'", to_text(runner.config)), prepared.error());
    return runner;
}

double fastest(const std::vector<Runner>& runners)
{
    double best = 0;
    for (const Runner& runner : runners)
        if (runner.ms() > 0 && (best == 0 || runner.ms() < best)) best = runner.ms();
    return best;
}

void time_all(Workbench& bench, std::vector<Runner>& runners, const SearchRules& rules)
{
    for (std::uint32_t round = 0; round < std::max(rules.rounds, 1U); ++round) {
        const double most = rules.drop_above * fastest(runners);
        for (Runner& runner : runners) {
            const bool is_out = &runner != runners.data() && runner.is_far_behind(most);
            if (!is_out) measure(bench, runner);
        }
    }
}

/// Returns the fastest configuration if its gain over the default is large enough, or else the default. Of equally fast
/// configurations the first one counts.
const Runner& choose(const std::vector<Runner>& runners, double min_gain)
{
    const Runner* best = runners.data();
    for (const Runner& runner : runners)
        if (runner.ms() > 0 && (best->ms() == 0 || runner.ms() < best->ms())) best = &runner;
    const bool is_worth_it = best->ms() < runners.front().ms() * (1 - min_gain);
    return is_worth_it || !runners.front().runs() ? *best : runners.front();
}

class Descent {
public:
    Descent(Workbench& bench, const Space& space, const SearchRules& rules)
        : m_bench(bench), m_space(space), m_rules(rules)
    {
    }

    Runner run(Runner start)
    {
        m_current = std::move(start);
        m_tried[m_current.config] = m_current.timing();
        while (one_pass()) {}
        return m_current;
    }
    [[nodiscard]] const std::map<Configuration, Timing>& tried() const noexcept { return m_tried; }

private:
    /// Tries the neighbours of each parameter once. Returns whether a parameter changed.
    bool one_pass()
    {
        bool moved = false;
        for (const Range& range : m_space.ranges)
            while (step(range)) moved = true;
        return moved;
    }
    bool step(const Range& range)
    {
        for (const Configuration& next : neighbours(m_space, range, m_current.config))
            if (!m_tried.contains(next) && m_tried.size() <= m_rules.most_steps && is_faster(next)) return true;
        return false;
    }
    /// Whether `next` is faster than the present configuration. Times both again, in turns, because times from
    /// different minutes are not comparable.
    bool is_faster(const Configuration& next)
    {
        Runner other = try_out(m_bench, next);
        Runner current{m_current.config};
        for (std::uint32_t round = 0; round < std::max(m_rules.rounds, 1U) && other.runs(); ++round) {
            measure(m_bench, current);
            measure(m_bench, other);
            if (current.runs() && other.is_far_behind(m_rules.drop_above * current.ms())) break;
        }
        m_tried[next] = other.timing();
        if (!other.runs() || !current.runs() || other.ms() >= current.ms() * (1 - m_rules.min_gain)) return false;
        m_current = std::move(other);
        return true;
    }

    Workbench& m_bench;
    const Space& m_space;
    const SearchRules& m_rules;
    Runner m_current;
    std::map<Configuration, Timing> m_tried;
};

double since(const Clock& clock, std::chrono::steady_clock::time_point begin)
{
    return Milliseconds{clock.steady() - begin}.count();
}

} // namespace

Result<Winner> enumerate(Workbench& bench, const Space& space, const SearchRules& rules, const Clock& clock)
{
    const auto begin = clock.steady();
    auto first = begin_default(bench, space);
    if (!first) return std::unexpected(first.error());
    std::vector<Runner> runners{std::move(*first)};
    for (std::size_t i = 1; i < space.candidates.size(); ++i) runners.push_back(try_out(bench, space.candidates[i]));
    time_all(bench, runners, rules);
    // The search fails if the default fails, because no gain is known without the default's time.
    if (!runners.front().runs())
        return fail(ErrorCode::driver_failed, "the default configuration '{}': {}", to_text(runners.front().config),
                    runners.front().failed);
    Winner winner{choose(runners, rules.min_gain).config};
    for (const Runner& runner : runners) winner.timings.push_back(runner.timing());
    winner.took_ms = since(clock, begin);
    return winner;
}

Result<Winner> descend(Workbench& bench, const Space& space, const SearchRules& rules, const Clock& clock, Winner start)
{
    const auto begin = clock.steady();
    auto first = begin_default(bench, space);
    if (!first) return std::unexpected(first.error());
    Runner runner = start.config == first->config ? std::move(*first) : try_out(bench, start.config);
    if (!runner.runs()) runner = Runner{space.candidates.front()};
    for (std::uint32_t round = 0; round < std::max(rules.rounds, 1U); ++round) measure(bench, runner);
    if (!runner.runs())
        return fail(ErrorCode::driver_failed, "'{}', where coordinate descent starts: {}", to_text(runner.config),
                    runner.failed);
    Descent descent(bench, space, rules);
    Winner winner{descent.run(std::move(runner)).config, FoundBy::coordinate_descent, std::move(start.timings)};
    for (const auto& [config, timing] : descent.tried()) {
        const auto known = std::ranges::find(winner.timings, config, &Timing::config);
        if (known == winner.timings.end())
            winner.timings.push_back(timing);
        else if (!timing.failed.empty() || timing.ms > 0)
            *known = timing;
    }
    winner.took_ms = start.took_ms + since(clock, begin);
    return winner;
}

} // namespace warmgraph::autotune
