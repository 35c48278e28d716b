// Promises D1 and D2: a real program is killed after each of its file operations, and at random times. The folder that
// it leaves has no torn files, the next run is right, and left-over files do not become more and more.
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include <signal.h>

#include "random_graph.hpp"
#include "victim_fixture.hpp"

namespace warmgraph::test::kill_test {
namespace {

struct Moment {
    const char* name;
    const char* action;
    bool is_warm;
    std::uint64_t operations; ///< an upper bound; the loop ends when the program has fewer operations
};

void PrintTo(const Moment& moment, std::ostream* out) { *out << moment.name; }

class KilledAfterEach : public VictimTest, public testing::WithParamInterface<Moment> {};

TEST_P(KilledAfterEach, FileOperationItLeavesAUsableCache)
{
    const Moment& moment = GetParam();
    if (moment.is_warm) keep_warm();
    for (std::uint64_t nth = 1;; ++nth) {
        if (moment.is_warm)
            start_warm();
        else
            start_anew();
        const ProcessResult killed = run(moment.action, {.does = "kill", .nth = nth});
        SCOPED_TRACE("killed after " + interfered_with());
        if (m_report->injected == 0) {
            EXPECT_EQ(killed.status, 0) << killed.errors;
            EXPECT_GT(nth, moment.operations) << "hardly anything was looked at";
            return;
        }
        ASSERT_EQ(killed.status, 1000 + SIGKILL) << killed.errors;
        expect_nothing_torn();
        expect_usable();
        if (HasFailure()) return; // all further rounds would fail in the same way
    }
}

INSTANTIATE_TEST_SUITE_P(Each, KilledAfterEach,
                         testing::Values(Moment{"Cold", "run", false, 40}, Moment{"Warm", "run", true, 5},
                                         Moment{"Overwriting", "refresh", true, 20},
                                         Moment{"Evicting", "evict", true, 20}, Moment{"Clearing", "clear", true, 20}),
                         [](const auto& moment) { return moment.param.name; });

/// The number of random kills. A long run can set it in $WARMGRAPH_TEST_KILLS.
int kills()
{
    const char* const given = std::getenv("WARMGRAPH_TEST_KILLS");
    return given != nullptr ? std::atoi(given) : 200;
}

using Killed = VictimTest;

TEST_F(Killed, AtRandomTimesItLeavesAUsableCacheAndNothingThatGrows)
{
    const int most = kills();
    std::mt19937_64 random(test_seed());
    const auto started = std::chrono::steady_clock::now();
    ASSERT_EQ(run().status, 0);
    std::chrono::nanoseconds window = std::chrono::steady_clock::now() - started; // the kill comes in this time
    const std::vector<std::string> actions{"run", "refresh", "evict", "clear", "run"};
    int killed = 0;
    for (int round = 0; round < 4 * most && killed < most; ++round) {
        const std::string& action = actions[random() % actions.size()];
        if (random() % 4 == 0) start_anew(); // in all other rounds, the folder of the rounds before is used
        const pid_t child = start(action);
        const auto after = std::chrono::nanoseconds(random() % static_cast<std::uint64_t>(window.count()));
        std::this_thread::sleep_for(after);
        static_cast<void>(::kill(child, SIGKILL)); // fails if the child has already ended
        const ProcessResult ended = wait_for(child);
        SCOPED_TRACE(fmt::format("{} killed after {} us", action, after.count() / 1000));
        ASSERT_TRUE(ended.status == 0 || ended.status == 1000 + SIGKILL) << ended.status << ended.errors;
        killed += ended.status == 0 ? 0 : 1;
        window = ended.status == 0 ? window * 9 / 10 : window * 21 / 20;
        expect_nothing_torn();
        if (killed % 4 == 0) expect_usable();
        if (HasFailure()) return;
    }
    EXPECT_EQ(killed, most);
    expect_usable();
    std::vector<std::string> files;
    for (const auto& item : fs::recursive_directory_iterator(m_place))
        if (item.is_regular_file()) files.push_back(item.path().string());
    // The files of two variants, an image, the tag, leases, usage, misses, and the locks for usage and misses.
    EXPECT_LE(files.size(), 12U) << testing::PrintToString(files);
}

} // namespace
} // namespace warmgraph::test::kill_test
