// What is done behind a first launch: one thing at a time, ended with its owner.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "completion.hpp"

namespace warmgraph {
namespace {

TEST(Completion, DoesOneThingAtATimeAndTheNextOnceThatIsDone)
{
    Completion completion;
    std::promise<void> go, begun;
    std::atomic<int> done = 0;
    completion.begin([&, released = go.get_future().share()](const std::stop_token&) {
        begun.set_value();
        released.wait();
        ++done;
    });
    begun.get_future().wait();
    completion.begin([&](const std::stop_token&) { done += 100; }); // it is busy
    go.set_value();
    while (done == 0) std::this_thread::yield();
    EXPECT_EQ(done, 1);
    while (done == 1) // it may be busy for another moment
        completion.begin([&](const std::stop_token&) { done = 2; });
    EXPECT_EQ(done, 2);
}

TEST(Completion, EndsWithItsOwnerWhichStopsIt)
{
    std::atomic<bool> is_stopped = false;
    auto completion = std::make_unique<Completion>();
    std::promise<void> begun;
    completion->begin([&](const std::stop_token& stop) {
        begun.set_value();
        while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::microseconds{100});
        is_stopped = true;
    });
    begun.get_future().wait();
    completion.reset();
    EXPECT_TRUE(is_stopped);
}

} // namespace
} // namespace warmgraph
