// Tests hooks that run at exit. Each case runs in its own process, which ends with std::exit.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "child_process.hpp"
#include "never_destroyed.hpp"
#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::test::exit_hook_test {
namespace {

/// Runs `body` in a child that then calls exit. Returns the text that `body` and its hooks write into a pipe.
template <class Body>
std::string written_until_exit(Body body)
{
    int ends[2];
    if (::pipe(ends) != 0) return "no pipe";
    ChildProcess child([&]() -> int {
        const auto write = [to = ends[1]](char letter) { static_cast<void>(::write(to, &letter, 1)); };
        body(write);
        std::exit(0);
    });
    ::close(ends[1]);
    EXPECT_EQ(child.wait(), 0);
    std::string text;
    for (char letter = 0; ::read(ends[0], &letter, 1) == 1;) text += letter;
    ::close(ends[0]);
    return text;
}

void leak(std::function<void()> hook) { never_destroyed<ExitHook>(std::move(hook)); }

TEST(ExitHooks, RunTheLastOneFirstAndOnce)
{
    EXPECT_EQ(written_until_exit([](auto write) {
                  leak([write] { write('a'); });
                  leak([write] { write('b'); });
                  write('0');
              }),
              "0ba");
}

TEST(ExitHooks, RunBeforeWhatWasRegisteredEarlier)
{
    static std::function<void()> s_earlier;
    EXPECT_EQ(written_until_exit([](auto write) {
                  leak([write] { write('a'); });
                  s_earlier = [write] { write('e'); };
                  std::atexit([] { s_earlier(); });
                  leak([write] { write('b'); });
              }),
              "bae")
        << "every hook is for what there is when it is made; the earlier ones are done with it";
}

TEST(ExitHooks, AreGoneWithTheirObject)
{
    EXPECT_EQ(written_until_exit([](auto write) {
                  leak([write] { write('a'); });
                  const ExitHook gone([write] { write('b'); });
              }),
              "a");
}

TEST(ExitHooks, DoNotRunInAForkedChild)
{
    EXPECT_EQ(written_until_exit([](auto write) {
                  leak([write] { write('a'); });
                  EXPECT_EQ(ChildProcess([]() -> int { std::exit(0); }).wait(), 0);
                  write('0');
              }),
              "0a");
}

TEST(ExitHooks, EndAThreadThatWouldUseOpensslWhileItIsTakenDown)
{
    for (int i = 0; i < 20; ++i) {
        const std::string text = written_until_exit([](auto write) {
            struct Worker {
                std::atomic<bool> stops = false, runs = false;
                std::thread thread;
            };
            auto& worker = never_destroyed<Worker>();
            worker.thread = std::thread([&worker] {
                while (!worker.stops) {
                    static_cast<void>(sha256({}));
                    worker.runs = true;
                }
            });
            leak([&worker, write] {
                worker.stops = true;
                worker.thread.join();
                write('j');
            });
            while (!worker.runs) std::this_thread::yield();
        });
        ASSERT_EQ(text, "j");
    }
}

} // namespace
} // namespace warmgraph::test::exit_hook_test
