#include "warmgraph/autotune/judge.hpp"

#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::autotune {
namespace {

/// Returns the first version that differs or is unknown; "" if all versions are equal.
std::string other_driver(const Facts& stored, const Facts& now)
{
    for (const auto& [name, value] : now) {
        const auto found = stored.find(name);
        const std::string was = found != stored.end() ? found->second : "(none)";
        if (was != value || value == cachefmt::k_unknown)
            return fmt::format("it was tuned with {} {}, but this process has {}", name, printable(was),
                               printable(value));
    }
    for (const auto& [name, value] : stored)
        if (!now.contains(name))
            return fmt::format("it was tuned with {} {}, but this process has no such value", name, value);
    return {};
}

/// Judges a winner that descent found.
WinnerVerdict judge_descended(const BestConfig& stored, const ConfigRequest& now)
{
    if (now.search != SearchMethod::coordinate_descent)
        return {WinnerVerdict::Use::none,
                "coordinate descent found it, but this kernel does not use coordinate descent"};
    if (std::string wrong = why_outside(now.space, stored.config); !wrong.empty())
        return {WinnerVerdict::Use::none, std::move(wrong)};
    return {WinnerVerdict::Use::winner};
}

} // namespace

WinnerVerdict judge(const BestConfig& stored, const ConfigRequest& now)
{
    const auto miss = [](std::string why) { return WinnerVerdict{WinnerVerdict::Use::none, std::move(why)}; };
    if (stored.key != now.key || stored.kernel != now.kernel)
        return miss(fmt::format("it was stored for kernel '{}' {}, expected '{}' {}", stored.kernel,
                                short_hex(stored.key), now.kernel, short_hex(now.key)));
    const Digest candidates = configs_hash(now.space.candidates);
    if (stored.configs_hash != candidates)
        return miss(fmt::format("it was chosen among other candidates ({}), expected the current ones ({})",
                                short_hex(stored.configs_hash), short_hex(candidates)));
    if (now.driver_rule == DriverRule::same)
        if (std::string why = other_driver(stored.driver, now.driver); !why.empty()) return miss(std::move(why));
    if (stored.found_by == FoundBy::coordinate_descent) return judge_descended(stored, now);
    const std::size_t count = matches(now.space, stored.config);
    if (count != 1)
        return miss(fmt::format("{} candidates are equal to the stored winner '{}', expected exactly one", count,
                                to_text(stored.config)));
    return {now.search == SearchMethod::coordinate_descent ? WinnerVerdict::Use::start : WinnerVerdict::Use::winner};
}

} // namespace warmgraph::autotune
