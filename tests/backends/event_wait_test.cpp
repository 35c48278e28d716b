#include "expect_error.hpp"
#include "warmgraph/backends/event_wait.hpp"

namespace warmgraph::backends::test::event_wait_test {
namespace {

using namespace std::chrono_literals;

/// A clock whose time passes only in sleep().
class SleepClock final : public Clock {
public:
    [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override { return m_now; }
    [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override { return {}; }
    void sleep_for(std::chrono::nanoseconds time) override
    {
        sleeps.push_back(time);
        m_now += time;
    }
    std::vector<std::chrono::nanoseconds> sleeps;

private:
    std::chrono::steady_clock::time_point m_now;
};

/// An event that is done after it was queried a given number of times.
class AskedEvent final : public Event {
public:
    explicit AskedEvent(int questions) : m_left(questions) {}
    Result<bool> is_done() override { return --m_left <= 0; }

private:
    int m_left;
};

class BrokenEvent final : public Event {
public:
    Result<bool> is_done() override { return fail(ErrorCode::driver_failed, "the device is gone"); }
};

TEST(EventWait, OfWorkThatIsDoneOrNearlySoSleepsNotAtAll)
{
    SleepClock clock;
    for (const int questions : {1, 10}) {
        AskedEvent event(questions);
        EXPECT_EQ(wait_for(event, 1ns, clock), true);
    }
    EXPECT_TRUE(clock.sleeps.empty());
}

TEST(EventWait, SleepsLongerEachTimeUpToAMillisecond)
{
    SleepClock clock;
    AskedEvent event(24);
    EXPECT_EQ(wait_for(event, 1s, clock), true);
    EXPECT_EQ(clock.sleeps, (std::vector<std::chrono::nanoseconds>{50us, 100us, 200us, 400us, 800us, 1ms, 1ms}));
}

TEST(EventWait, GivesUpWhenTheLimitHasPassedAndSleepsNoLonger)
{
    SleepClock clock;
    AskedEvent event(1'000'000);
    EXPECT_EQ(wait_for(event, 5ms, clock), false);
    EXPECT_EQ(clock.steady().time_since_epoch(), 5ms);
    EXPECT_EQ(wait_for(event, 0ns, clock), false);
    EXPECT_EQ(clock.steady().time_since_epoch(), 5ms);
}

TEST(EventWait, PassesAFailureOn)
{
    SleepClock clock;
    BrokenEvent event;
    EXPECT_TRUE(warmgraph::test::failed_with(wait_for(event, 1s, clock), ErrorCode::driver_failed, "gone"));
}

} // namespace
} // namespace warmgraph::backends::test::event_wait_test
