// Usage counters are only advisory. They are added up across stores and processes, and never delay a call.
#include <functional>
#include <limits>
#include <thread>

#include <nlohmann/json.hpp>

#include "child_process.hpp"
#include "never_destroyed.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::usage_test {
namespace {

class Usage : public StoreTest {
protected:
    fs::path m_file = folder() / "usage.json";
};

TEST_F(Usage, IsEmptyAtFirst)
{
    const auto usage = open()->usage(k_decode);
    EXPECT_EQ(usage.hits, 0U);
    EXPECT_EQ(usage.last_used, "");
    EXPECT_FALSE(fs::exists(m_file)) << "asking makes no file";
}

TEST_F(Usage, AddsUpAcrossStores)
{
    open()->add_usage(k_decode, {.hits = 1, .recordings = 1, .saved_ms = 1.5, .last_used = "2026-11-20T10:00:00Z"});
    open()->add_usage(k_decode,
                      {.hits = 2, .misses = 3, .refusals = 4, .saved_ms = 2, .last_used = "2026-11-20T09:00:00Z"});
    open()->add_usage(k_decode, {.misses = 1});
    const auto usage = open()->usage(k_decode);
    EXPECT_EQ(usage.hits, 3U);
    EXPECT_EQ(usage.misses, 4U);
    EXPECT_EQ(usage.recordings, 1U);
    EXPECT_EQ(usage.refusals, 4U);
    EXPECT_EQ(usage.saved_ms, 3.5);
    EXPECT_EQ(usage.last_used, "2026-11-20T10:00:00Z") << "the latest";
    EXPECT_EQ(open()->usage(k_prompt).hits, 0U);
}

TEST_F(Usage, ALastUseInTheFutureGivesWayToTheNextOne)
{
    open()->add_usage(k_decode, {.hits = 1, .last_used = "2099-01-01T00:00:00Z"});
    EXPECT_EQ(open()->usage(k_decode).last_used, "");
    open()->add_usage(k_decode, {.hits = 1, .last_used = "2026-11-20T10:00:00Z"});
    EXPECT_EQ(open()->usage(k_decode).last_used, "2026-11-20T10:00:00Z");
    EXPECT_EQ(open()->usage(k_decode).hits, 2U);
}

TEST_F(Usage, WhatIsAddedSoonReachesTheDiskWithoutAnotherCall)
{
    const auto store = open();
    store->add_usage_soon(k_decode, {.hits = 1});
    store->add_usage_soon(k_decode, {.hits = 2});
    EXPECT_EQ(store->usage(k_decode).hits, 3U) << "known at once in the same store";
    const auto other = open();
    for (int i = 0; i < 12000 && other->usage(k_decode).hits < 3; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(other->usage(k_decode).hits, 3U);
}

TEST_F(Usage, WhatIsAddedSoonIsNeverUnseenOnItsWayToTheDisk)
{
    constexpr std::uint64_t k_rounds = 300;
    const auto store = open();
    for (std::uint64_t i = 1; i <= k_rounds; ++i) {
        store->add_usage_soon(k_decode, {.hits = 1});
        ASSERT_EQ(store->usage(k_decode).hits, i);
    }
}

TEST_F(Usage, WhatIsAddedSoonWhileAnotherWritesIsWrittenAfterwards)
{
    const auto store = open();
    fs::create_directories(folder());
    auto lock = posix_file_system().try_lock(folder() / ".usage.lock", 0600).value();
    store->add_usage_soon(k_decode, {.hits = 1});
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // time for the thread to find the lock held
    EXPECT_FALSE(fs::exists(m_file));
    lock.reset();
    const auto other = open();
    for (int i = 0; i < 12000 && other->usage(k_decode).hits < 1; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(other->usage(k_decode).hits, 1U);
}

TEST_F(Usage, WhatIsAddedSoonIsWrittenAtTheLatestWhenTheStoreGoes)
{
    for (int i = 0; i < 20; ++i) open()->add_usage_soon(k_decode, {.hits = 1});
    EXPECT_EQ(open()->usage(k_decode).hits, 20U);
}

TEST_F(Usage, WhatIsAddedSoonIsWrittenWhenTheProcessExitsWithTheStoreOpen)
{
    constexpr std::uint64_t k_processes = 20;
    for (std::uint64_t i = 0; i < k_processes; ++i) {
        ChildProcess child([this]() -> int {
            never_destroyed<std::unique_ptr<LocalStore>>(open())->add_usage_soon(k_decode, {.hits = 1});
            std::exit(0);
        });
        ASSERT_EQ(child.wait(), 0);
    }
    EXPECT_EQ(open()->usage(k_decode).hits, k_processes);
}

TEST_F(Usage, AForkedChildThatDropsTheStoreEndsAndWritesNothing)
{
    auto store = open();
    fs::create_directories(folder());
    auto lock = posix_file_system().try_lock(folder() / ".usage.lock", 0600).value();
    store->add_usage_soon(k_decode, {.hits = 1}); // only the parent writes this use
    ChildProcess child([&]() -> int {
        store.reset();
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    lock.reset();
    store.reset();
    EXPECT_EQ(open()->usage(k_decode).hits, 1U);
}

TEST_F(Usage, AHitWithoutATimeWasNow)
{
    const std::string before = to_iso8601(std::chrono::system_clock::now());
    open()->add_usage(k_decode, {.hits = 1});
    EXPECT_GE(open()->usage(k_decode).last_used, before);
    EXPECT_LE(open()->usage(k_decode).last_used, to_iso8601(std::chrono::system_clock::now()));
}

TEST_F(Usage, KeepsTheNewestTimesOfAColdAndOfAWarmStart)
{
    open()->add_usage(k_decode, {.recordings = 1, .cold = {{"look up", 0.5}, {"compile", 700}}});
    open()->add_usage(k_decode, {.hits = 1, .warm = {{"load", 9}}});
    open()->add_usage(k_decode, {.hits = 1, .warm = {{"load", 4}, {"build", 0.25}}});
    const auto usage = open()->usage(k_decode);
    EXPECT_EQ(usage.cold, (store::PhaseTimes{{"look up", 0.5}, {"compile", 700}})) << "in their order";
    EXPECT_EQ(usage.warm, (store::PhaseTimes{{"load", 4}, {"build", 0.25}}));
}

TEST_F(Usage, OfAVersionThatKeptNoTimesIsRead)
{
    open(); // makes the folder now, because a folder with foreign files would not be opened
    write(m_file, R"({"hits":7,"misses":1,"recordings":1,"refusals":0,"saved_ms":2.5,"last_used":"","last_miss":""})");
    EXPECT_EQ(open()->usage(k_decode).hits, 7U);
    EXPECT_TRUE(open()->usage(k_decode).cold.empty());
}

TEST_F(Usage, IsReadableJson)
{
    open()->add_usage(k_decode, {.hits = 2, .saved_ms = 0.5});
    std::ifstream file(m_file);
    const auto json = nlohmann::json::parse(file);
    EXPECT_EQ(json.at("hits"), 2);
    EXPECT_EQ(json.at("saved_ms"), 0.5);
}

TEST_F(Usage, ADamagedFileStartsAgain)
{
    open(); // makes the folder now, because a folder with foreign files would not be opened
    for (
        const char* text :
        {"", "{", "[]", "null", "{}", R"({"hits": -1})", R"({"hits": "many"})", "\xff\xfe",
         R"({"hits":1,"misses":0,"recordings":0,"refusals":0,"saved_ms":-1,"last_used":"","last_miss":""})",
         R"({"hits":1,"misses":0,"recordings":0,"refusals":0,"saved_ms":0,"last_used":"","last_miss":"","cold":{"try":1}})",
         R"({"hits":1,"misses":0,"recordings":0,"refusals":0,"saved_ms":0,"last_used":"","last_miss":"","warm":[["load","4"]]})"}) {
        write(m_file, text);
        EXPECT_EQ(open()->usage(k_decode).hits, 0U) << text;
        open()->add_usage(k_decode, {.hits = 2});
        EXPECT_EQ(open()->usage(k_decode).hits, 2U) << text;
    }
    write(m_file, std::string(100'000, '['));
    EXPECT_EQ(open()->usage(k_decode).hits, 0U) << "deep nesting";
}

TEST_F(Usage, TakesOddTextsAndNumbers)
{
    open()->add_usage(k_decode, {.hits = 1, .saved_ms = std::numeric_limits<double>::quiet_NaN()});
    open()->add_usage(k_decode, {.hits = 1, .saved_ms = -5});
    EXPECT_EQ(open()->usage(k_decode).hits, 2U);
    EXPECT_EQ(open()->usage(k_decode).saved_ms, 0);
    for (int i = 0; i < 2; ++i) open()->add_usage(k_decode, {.hits = 1, .saved_ms = 1.7e308});
    EXPECT_EQ(open()->usage(k_decode).hits, 4U) << "a sum that is no number would make the file unreadable";
    EXPECT_EQ(open()->usage(k_decode).saved_ms, 1.7e308);
}

TEST_F(Usage, WhatAnotherWriterHoldsUpIsKeptAndWrittenLater)
{
    const auto store = open();
    fs::create_directories(folder());
    auto lock = posix_file_system().try_lock(folder() / ".usage.lock", 0600).value();
    ASSERT_NE(lock, nullptr);
    store->add_usage(k_decode, {.hits = 1});
    EXPECT_FALSE(fs::exists(m_file));
    EXPECT_EQ(store->usage(k_decode).hits, 1U) << "this process knows of it";
    lock.reset();
    store->add_usage(k_decode, {.hits = 1});
    EXPECT_EQ(open()->usage(k_decode).hits, 2U);
}

TEST_F(Usage, IsWrittenWhenTheStoreCloses)
{
    auto store = open();
    fs::create_directories(folder());
    auto lock = posix_file_system().try_lock(folder() / ".usage.lock", 0600).value();
    store->add_usage(k_decode, {.hits = 1});
    lock.reset();
    store.reset();
    EXPECT_EQ(open()->usage(k_decode).hits, 1U);
}

/// A clock that does not wait in sleep(), but adds up the time.
class SleepCounter final : public Clock {
public:
    [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override
    {
        return system_clock().steady() + slept;
    }
    [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override { return system_clock().wall(); }
    void sleep_for(std::chrono::nanoseconds time) override
    {
        slept += time;
        ++sleeps;
        if (const auto call = on_sleep) call(); // a copy, because the call may clear this member
    }
    std::chrono::nanoseconds slept{0};
    int sleeps = 0;
    std::function<void()> on_sleep;
};

/// If a stopped process holds the lock, closing takes 100 ms, and the numbers are lost.
TEST_F(Usage, AStoreClosesSoonWhileAnotherProcessHoldsTheLock)
{
    static_cast<void>(open());
    fs::create_directories(folder());
    const Gate is_held, may_go;
    ChildProcess holder([&] {
        const auto lock = posix_file_system().try_lock(folder() / ".usage.lock", 0600);
        is_held.open();
        may_go.wait();
        return lock && *lock ? 0 : 1;
    });
    is_held.wait();
    SleepCounter clock;
    const auto open_with_clock = [&] { return LocalStore::open(m_root, {}, posix_file_system(), clock).value(); };
    auto store = open_with_clock();
    store->add_usage(k_decode, {.hits = 1});
    store->add_usage(k_prompt, {.hits = 1});
    EXPECT_EQ(clock.sleeps, 0) << "a call waits for nobody";
    store.reset();
    EXPECT_EQ(clock.slept, std::chrono::milliseconds(100));
    EXPECT_GE(clock.sleeps, 5) << "and looks again now and then";
    EXPECT_EQ(open()->usage(k_prompt).hits, 1U) << "the other function's are not held up";

    // If the lock is held only for a moment, no numbers are lost.
    store = open_with_clock();
    store->add_usage(k_decode, {.hits = 1});
    clock.slept = std::chrono::nanoseconds(0);
    clock.on_sleep = [&] {
        if (clock.slept < std::chrono::milliseconds(20)) return;
        clock.on_sleep = nullptr;
        may_go.open();
        EXPECT_EQ(holder.wait(), 0);
    };
    store.reset();
    EXPECT_LT(clock.slept, std::chrono::milliseconds(30));
    EXPECT_EQ(open()->usage(k_decode).hits, 1U) << "of the second store; the first one's went with it";
}

TEST_F(Usage, AnExitWithTheLockHeldWaitsOnce)
{
    static_cast<void>(open());
    fs::create_directories(folder());
    const auto lock = posix_file_system().try_lock(folder() / ".usage.lock", 0600).value();
    ASSERT_NE(lock, nullptr);
    ChildProcess child([this]() -> int {
        static SleepCounter clock;
        struct AtTheEnd {
            ~AtTheEnd()
            {
                store.reset();
                ::_exit(clock.slept == std::chrono::milliseconds(100) ? 7 : 1);
            }
            std::unique_ptr<LocalStore> store;
        };
        static AtTheEnd last{LocalStore::open(m_root, {}, posix_file_system(), clock).value()};
        last.store->add_usage_soon(k_decode, {.hits = 1}); // makes the writer thread and the exit hook
        std::exit(0);
    });
    EXPECT_EQ(child.wait(), 7);
}

TEST_F(Usage, MergesAcrossProcesses)
{
    constexpr int k_processes = 8;
    constexpr std::uint64_t k_rounds = 20;
    {
        const Gate start, finished, turn;
        std::vector<ChildProcess> children;
        for (int i = 0; i < k_processes; ++i) {
            children.emplace_back([&] {
                start.wait();
                {
                    const auto store = open();
                    for (std::uint64_t round = 0; round < k_rounds; ++round)
                        store->add_usage(k_decode, {.hits = 1, .saved_ms = 0.5});
                    finished.open();
                    // When several processes write, some writes may be delayed. They are done when no other process
                    // writes.
                    turn.wait();
                    store->add_usage(k_decode, {.misses = 1});
                }
                turn.open();
                return 0;
            });
        }
        for (int i = 0; i < k_processes; ++i) start.open();
        for (int i = 0; i < k_processes; ++i) finished.wait();
        turn.open();
        for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
    }
    const auto usage = open()->usage(k_decode);
    EXPECT_EQ(usage.hits, k_processes * k_rounds);
    EXPECT_EQ(usage.misses, std::uint64_t{k_processes});
    EXPECT_EQ(usage.saved_ms, k_processes * k_rounds * 0.5);
    EXPECT_THAT(names_in(folder()), UnorderedElementsAre(".usage.lock", "usage.json"));
}

TEST_F(Usage, NoFailureOfTheDiskReachesTheCaller)
{
    FaultyFileSystem files;
    const auto store = open({}, files);
    for (std::uint64_t nth = 1;; ++nth) {
        files.fail_at(nth, ErrorCode::no_space, FaultyFileSystem::Lasts::for_ever);
        store->add_usage(k_decode, {.hits = 1});
        const bool failed = files.injected() > 0;
        files.stop_failing();
        if (!failed) {
            EXPECT_EQ(store->usage(k_decode).hits, nth) << "counted once each, failed writes included";
            EXPECT_EQ(open()->usage(k_decode).hits, nth);
            EXPECT_GT(nth, 4U) << "failures were injected";
            break;
        }
    }
}

} // namespace
} // namespace warmgraph::test::usage_test
