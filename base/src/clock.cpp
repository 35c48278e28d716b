#include "warmgraph/base/clock.hpp"

#include <thread>

#include <fmt/format.h>

namespace warmgraph {
namespace {

class SystemClock final : public Clock {
public:
    std::chrono::steady_clock::time_point steady() const noexcept override { return std::chrono::steady_clock::now(); }
    std::chrono::system_clock::time_point wall() const noexcept override { return std::chrono::system_clock::now(); }
    void sleep_for(std::chrono::nanoseconds time) override { std::this_thread::sleep_for(time); }
};

} // namespace

Clock& system_clock() noexcept
{
    static SystemClock& clock = *new SystemClock; // never destroyed: threads may outlive main()
    return clock;
}

std::string to_iso8601(std::chrono::system_clock::time_point time)
{
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const auto days = std::chrono::floor<std::chrono::days>(seconds);
    const std::chrono::year_month_day date{days};
    const std::chrono::hh_mm_ss clock{seconds - days};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                       clock.minutes().count(), clock.seconds().count());
}

} // namespace warmgraph
