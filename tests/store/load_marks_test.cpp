// Load marks: files that name the entry whose code a driver is loading. The tests are about their writers, whether the
// writers are alive, and the removal of the files.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_process.hpp"
#include "store_fixture.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::test::load_marks_test {
namespace {

using store::LoadMark;
using store::LoadTarget;

const LoadTarget k_here{"550.54", "NVIDIA H200 (sm_90)"};

class LoadMarks : public StoreTest {
protected:
    LoadMarks()
    {
        const auto store = open();
        take(store->publish(m_entry));
    }
    /// Starts a process that dies while it loads the entry, `count` times.
    void die(const LoadTarget& target = k_here, int count = 1)
    {
        ChildProcess child([&] {
            const auto store = open();
            std::vector<std::unique_ptr<LoadMark>> marks;
            for (int i = 0; i < count; ++i) marks.push_back(store->begin_load(m_key, target).value());
            ::_exit(marks.back() != nullptr ? 7 : 1);
            return 1;
        });
        ASSERT_EQ(child.wait(), 7);
    }
    void succeed(const LoadTarget& target = k_here)
    {
        const auto store = open();
        auto mark = take(store->begin_load(m_key, target));
        ASSERT_NE(mark, nullptr);
        mark->succeed();
    }
    [[nodiscard]] bool is_condemned(const LoadTarget& target = k_here)
    {
        const auto store = open();
        const auto mark = store->begin_load(m_key, target);
        if (!mark) {
            EXPECT_EQ(mark.error().code, ErrorCode::driver_failed) << mark.error().message;
        }
        return !mark;
    }
    [[nodiscard]] std::vector<std::string> marks() const
    {
        auto names = names_in(folder());
        std::erase_if(names, [](const std::string& name) { return !name.starts_with(".loading-"); });
        return names;
    }
    /// The name of the mark with one part replaced. `from_end` counts the parts from the end of the name
    /// (docs/format.md).
    [[nodiscard]] static std::string with_part(std::string name, int from_end, const std::string& part)
    {
        std::size_t end = name.size();
        for (; from_end > 0; --from_end) end = name.rfind('-', end - 1);
        const std::size_t begin = name.rfind('-', end - 1) + 1;
        return name.replace(begin, end - begin, part);
    }
    void rename_mark(const std::string& from, const std::string& to) const
    {
        fs::rename(folder() / from, folder() / to);
    }

    const Entry m_entry = make_entry(k_decode);
    const EntryKey m_key = m_entry.header.key;
};

TEST_F(LoadMarks, StandBesideTheEntryAsLongAsItIsLoaded)
{
    const auto store = open();
    {
        auto mark = store->begin_load(m_key, k_here);
        ASSERT_TRUE(succeeded(mark));
        const auto names = marks();
        ASSERT_EQ(names.size(), 1U);
        EXPECT_THAT(names[0],
                    testing::MatchesRegex(R"(\.loading-[0-9a-f]{16}-[0-9a-f]{16}-1-.+-[0-9]+-[0-9]+-[0-9]+)"));
        EXPECT_THAT(names[0], HasSubstr(to_hex(m_key.guards_digest).substr(0, 16)));
        const std::string text = text_of(folder() / names[0]);
        EXPECT_THAT(text, AllOf(HasSubstr("decode"), HasSubstr("driver 550.54 on NVIDIA H200")));
        EXPECT_EQ(fs::status(folder() / names[0]).permissions(), fs::perms::owner_read | fs::perms::owner_write);
        auto second = store->begin_load(m_key, k_here); // as in another thread
        ASSERT_TRUE(succeeded(second));
        EXPECT_EQ(marks().size(), 2U);
        EXPECT_TRUE(store->check()->empty());
    }
    EXPECT_TRUE(marks().empty());
}

TEST_F(LoadMarks, TwoDeathsInARowCondemnUntilTheEntryIsReplaced)
{
    die();
    EXPECT_FALSE(is_condemned());
    die();
    const auto store = open();
    EXPECT_TRUE(failed_with(store->begin_load(m_key, k_here), ErrorCode::driver_failed, "last 2 processes in a row"));
    EXPECT_EQ(marks().size(), 2U) << "who only asks removes nothing";
    ASSERT_TRUE(succeeded(store->publish(m_entry)));
    EXPECT_TRUE(marks().empty());
    EXPECT_FALSE(is_condemned());
}

TEST_F(LoadMarks, AreGoneOnceTheEntryIsSetAside)
{
    die();
    die();
    open()->set_aside(m_entry.header, {ErrorCode::driver_failed, "the driver dies of it"});
    EXPECT_TRUE(marks().empty());
    EXPECT_EQ(quarantined().size(), 1U);
}

TEST_F(LoadMarks, ASuccessEndsTheRowOfItsDriverAndDeviceAlone)
{
    const LoadTarget newer{"560.1", k_here.device}, elsewhere{k_here.driver, "NVIDIA L4 (sm_89)"};
    for (const LoadTarget& other : {newer, elsewhere}) {
        die();
        die(other);
        EXPECT_FALSE(is_condemned());
        EXPECT_FALSE(is_condemned(other));
        succeed(other);
        EXPECT_EQ(marks().size(), 1U);
        die();
        EXPECT_TRUE(is_condemned());
        EXPECT_FALSE(is_condemned(other));
        ASSERT_TRUE(succeeded(open()->publish(m_entry)));
    }
}

TEST_F(LoadMarks, OfAnotherEntryDoNotCount)
{
    const Entry other = make_entry(k_decode, 1);
    ASSERT_TRUE(succeeded(open()->publish(other)));
    die();
    die();
    EXPECT_TRUE(succeeded(open()->begin_load(other.header.key, k_here)));
    EXPECT_TRUE(is_condemned());
}

TEST_F(LoadMarks, OfOneProcessAreOneDeath)
{
    die(k_here, 3);
    EXPECT_EQ(marks().size(), 3U);
    EXPECT_FALSE(is_condemned());
}

TEST_F(LoadMarks, OfAProcessThatNobodyHasWaitedForIsADeath)
{
    die();
    const pid_t child = ::fork();
    if (child == 0) {
        const auto store = open();
        const auto mark = store->begin_load(m_key, k_here);
        ::_exit(mark && *mark ? 0 : 1);
    }
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(is_condemned());
    ::waitpid(child, nullptr, 0);
}

TEST_F(LoadMarks, AProcessOfTheSameNumberThatBeganLaterIsAnother)
{
    die();
    die();
    const std::uint64_t own_start = start_of_process(::getpid());
    const auto give_to_this_process = [&](std::uint64_t start) {
        for (const std::string& name : marks())
            rename_mark(name, with_part(with_part(name, 2, std::to_string(::getpid())), 1, std::to_string(start)));
    };
    give_to_this_process(own_start + 1);
    EXPECT_TRUE(is_condemned());
    give_to_this_process(own_start);
    EXPECT_FALSE(is_condemned()) << "they live";
}

TEST_F(LoadMarks, OfAnotherMachineAreDeathsOnceTheyAreOld)
{
    die();
    die();
    for (const std::string& name : marks()) {
        std::string other = name;
        const std::size_t host = other.find("-2-") != other.npos ? other.find("-2-") : other.find("-1-");
        other.insert(host + 3, "far");
        rename_mark(name, other);
    }
    EXPECT_FALSE(is_condemned()) << "nobody knows whether they live";
    EXPECT_TRUE(open()->check()->empty());
    for (const std::string& name : marks()) make_older(folder() / name, std::chrono::minutes(11));
    EXPECT_TRUE(is_condemned());
}

TEST_F(LoadMarks, AForkedChildTakesNoneAway)
{
    const auto store = open();
    auto mark = take(store->begin_load(m_key, k_here));
    ChildProcess child([&] {
        mark->succeed();
        mark.reset();
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(marks().size(), 1U);
    mark.reset();
    EXPECT_TRUE(marks().empty());
}

/// A load whose entry was launched: the launch has returned, but the work is not done.
class LaunchMarks : public LoadMarks {
protected:
    void begin(store::LocalStore& store)
    {
        auto mark = take(store.begin_load(m_key, k_here));
        store.end_load_behind(std::move(mark), [this]() -> Result<bool> {
            if (has_failed) return fail(ErrorCode::driver_failed, "an illegal address");
            return is_done.load();
        });
    }
    std::atomic<bool> is_done = false, has_failed = false;
};

TEST_F(LaunchMarks, EndWithTheirWorkWhichIsASuccess)
{
    die();
    const auto store = open();
    begin(*store);
    store->settle_loads();
    EXPECT_EQ(marks().size(), 2U);
    is_done = true;
    store->settle_loads();
    EXPECT_TRUE(marks().empty()) << "the earlier death counts no more";
}

TEST_F(LaunchMarks, EndAtOnceWhereTheirWorkIsDone)
{
    is_done = true;
    const auto store = open();
    begin(*store);
    EXPECT_TRUE(marks().empty());
}

TEST_F(LaunchMarks, EndWithoutAFurtherCall)
{
    const auto store = open();
    begin(*store);
    EXPECT_EQ(marks().size(), 1U);
    is_done = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!marks().empty()) {
        ASSERT_LT(std::chrono::steady_clock::now(), end);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

TEST_F(LaunchMarks, EndWithTheStoreAndWithAProcessThatExits)
{
    begin(*open());
    EXPECT_TRUE(marks().empty());
    ChildProcess child([&]() -> int {
        const auto store = open();
        begin(*store);
        std::exit(marks().size() == 1 ? 7 : 1);
    });
    EXPECT_EQ(child.wait(), 7);
    EXPECT_TRUE(marks().empty());
}

TEST_F(LaunchMarks, AreDeathsWhereTheProcessIsKilledOrItsWorkFails)
{
    ChildProcess killed([&]() -> int {
        const auto store = open();
        begin(*store);
        ::kill(::getpid(), SIGKILL);
        return 1;
    });
    EXPECT_EQ(killed.wait(), 1000 + SIGKILL);
    EXPECT_EQ(marks().size(), 1U);
    ChildProcess broken([&]() -> int {
        const auto store = open();
        has_failed = true;
        begin(*store);
        std::exit(7);
    });
    EXPECT_EQ(broken.wait(), 7);
    EXPECT_EQ(marks().size(), 2U);
    EXPECT_TRUE(is_condemned());
}

/// A clock that is the machine's clock plus an offset.
class MovedClock final : public Clock {
public:
    [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override
    {
        return system_clock().steady() + by.load();
    }
    [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override
    {
        return system_clock().wall() + by.load();
    }
    void sleep_for(std::chrono::nanoseconds time) override { system_clock().sleep_for(time); }
    std::atomic<std::chrono::seconds> by = std::chrono::seconds(0);
};

TEST_F(LaunchMarks, EndWhereTheirWorkTakesLong)
{
    die();
    MovedClock clock;
    const auto store = *LocalStore::open(m_root, {}, posix_file_system(), clock);
    begin(*store);
    clock.by = std::chrono::minutes(4);
    store->settle_loads();
    EXPECT_EQ(marks().size(), 2U);
    clock.by = std::chrono::minutes(6);
    store->settle_loads();
    EXPECT_EQ(marks().size(), 1U) << "no success either";
}

TEST_F(LaunchMarks, AreNotAForkedChilds)
{
    const auto store = open();
    begin(*store);
    ChildProcess child([&] {
        has_failed = true; // in a forked child, the parent's driver fails
        store->settle_loads();
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(marks().size(), 1U);
    is_done = true;
    store->settle_loads();
    EXPECT_TRUE(marks().empty());
}

TEST_F(LoadMarks, AreNotMadeWhereNothingIsWritten)
{
    die();
    die();
    {
        StoreOptions reader;
        reader.access = store::StoreMode::read_only;
        const auto store = open(reader);
        const auto mark = take(store->begin_load(m_key, k_here));
        EXPECT_EQ(mark, nullptr) << "nor judged";
    }
    for (const std::string& name : marks()) fs::remove(folder() / name);
    const auto store = open();
    fs::remove(m_root / "CACHEDIR.TAG");
    const auto mark = take(store->begin_load(m_key, k_here));
    EXPECT_EQ(mark, nullptr) << "no longer the library's folder";
    EXPECT_TRUE(marks().empty());
}

TEST_F(LoadMarks, AFailingDiskCostsTheMarkAndNothingElse)
{
    FaultyFileSystem files;
    const auto store = open({}, files);
    std::uint64_t failures = 0;
    for (std::uint64_t nth = 1;; ++nth) {
        files.fail_at(nth, ErrorCode::no_space, FaultyFileSystem::Lasts::for_ever);
        {
            auto mark = store->begin_load(m_key, k_here);
            ASSERT_TRUE(succeeded(mark)) << nth;
            if (*mark) (*mark)->succeed();
        }
        const bool has_failed = files.injected() > 0;
        files.stop_failing();
        if (!has_failed) break;
        ++failures;
    }
    EXPECT_GE(failures, 4U) << "look, mark of the folder, make, remove";
    EXPECT_LE(marks().size(), 1U) << "where removing failed";
}

TEST_F(LoadMarks, ThatSayNothingAnyMoreAreFoundAndSwept)
{
    die();
    EXPECT_TRUE(open()->check()->empty()) << "a death that counts is no damage";
    const auto name = marks().at(0);
    make_older(folder() / name, std::chrono::hours(31 * 24));
    {
        StoreOptions reader;
        reader.access = store::StoreMode::read_only;
        const auto found = take(open(reader)->check());
        ASSERT_EQ(found.size(), 1U);
        EXPECT_EQ(found.front().path.filename(), name);
        EXPECT_EQ(found.front().error.code, ErrorCode::io_failed);
    }
    ASSERT_TRUE(succeeded(open()->check()));
    EXPECT_TRUE(marks().empty()) << "whoever opens the folder sweeps";

    const auto store = open();
    die();
    ASSERT_TRUE(succeeded(store->remove(m_key)));
    const auto found = take(store->repair());
    EXPECT_EQ(found.size(), 1U) << "its entry is gone";
    EXPECT_TRUE(marks().empty());
}

TEST_F(LoadMarks, ThatLiveStayWhoeverSweeps)
{
    const auto store = open();
    auto mark = take(store->begin_load(m_key, k_here));
    die();
    ASSERT_TRUE(succeeded(store->remove(m_key)));
    ASSERT_TRUE(succeeded(store->clear()));
    ASSERT_TRUE(succeeded(store->repair()));
    EXPECT_EQ(marks().size(), 1U);
    mark.reset();
    EXPECT_TRUE(marks().empty());
}

TEST_F(LoadMarks, GoWithTheirFunction)
{
    die();
    ASSERT_TRUE(succeeded(open()->clear()));
    EXPECT_FALSE(fs::exists(folder())) << "and its folder with them";
}

TEST_F(LoadMarks, OfOtherFormsAreSomebodyElses)
{
    die();
    const std::string name = marks().at(0);
    const auto store = open();
    for (const std::string& other :
         {std::string(".loading-"), name + "x", name + "-", "." + name, name.substr(0, name.rfind('-')),
          with_part(name, 1, "-1"), std::string(name).replace(9, 1, "G"), with_part(name, 0, "01")}) {
        write(folder() / other, "mine");
        const auto found = take(store->check());
        ASSERT_EQ(found.size(), 1U) << other;
        EXPECT_EQ(found.front().error.code, ErrorCode::invalid_argument) << other;
        ASSERT_TRUE(succeeded(store->clear({.kinds = {}, .quarantine = true})));
        ASSERT_TRUE(succeeded(store->repair()));
        EXPECT_TRUE(fs::exists(folder() / other)) << other;
        fs::remove(folder() / other);
    }
}

} // namespace
} // namespace warmgraph::test::load_marks_test
