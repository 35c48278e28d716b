// The driver crashes because of an entry's code: real processes end in the middle of a load or of a first launch. All
// of them use the fake backend.
#include <thread>

#include <signal.h>

#include "cache/cache_impl.hpp"
#include "cache_options.hpp"
#include "child_process.hpp"
#include "facade_fixture.hpp"
#include "faulty_file_system.hpp"
#include "preload_by_name.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::load_deaths_test {
namespace {

constexpr std::int32_t k_values = 32;
constexpr int k_died = 1000 + SIGKILL;

/// The properties of a process that makes one call.
struct Start {
    std::function<void()> in_load{}; ///< runs in place of the next call of the driver entry point `at`
    Policy policy = Policy::read_write;
    std::string driver = "1.9";
    bool preloads = false;
    std::string at = "load"; ///< name of a driver entry point
    bool preloads_by_name = false;
};

class LoadDeaths : public testing::Test {
protected:
    [[nodiscard]] CacheOptions options(const Start& start) const
    {
        CacheOptions result = cache_options("toy", dir.path() / "cache", start.policy);
        result.accept_newer_driver = true;
        return result;
    }
    static Function wrap(Cache& cache, const Device& device, const Program& program)
    {
        Spec spec;
        spec.inputs = {input("x", i32, {k_values})};
        spec.outputs = {output("y", i32, {k_values})};
        spec.code = {program};
        return cache.wrap("f", device, spec, [program](Recorder& r) {
            r.stream().copy(r["y"], r["x"], k_values * 4);
            r.stream().launch(program, "add_scalar", {.grid = {1}, .block = {k_values}}, r["y"], std::int32_t{37},
                              k_values);
        });
    }
    /// The exit status of the process: the outcome of its call, or 99 for a wrong result.
    int call(const Start& start) const
    {
        const auto fake = backends::make_fake_backend({.driver_version = start.driver});
        if (start.in_load) fake->inject({.entry = start.at, .instead = start.in_load});
        backends::register_backend(fake);
        const Device device{"fake:0"};
        const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
        Cache cache{options(start)};
        Function f = wrap(cache, device, program);
        if (start.preloads_by_name) preload_by_name(cache, "f", device);
        if (start.preloads) (void)cache.preload({.wait = PreloadWait::all});
        const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_values, 5)),
                     y = device.allocate(k_values * 4);
        f({{"x", x}, {"y", y}});
        device.synchronize();
        if (y.read<std::int32_t>() != std::vector<std::int32_t>(k_values, 42)) return 99;
        return static_cast<int>(f.report().outcome);
    }
    ChildProcess begin(const Start& start) const
    {
        return ChildProcess([this, start] { return call(start); });
    }
    int run(const Start& start = {}) const { return begin(start).wait(); }
    [[nodiscard]] static Start that_dies(Start start = {})
    {
        start.in_load = [] { ::kill(::getpid(), SIGKILL); };
        return start;
    }
    /// A start whose load opens the gate `is_in` and then waits for the gate `may_go`.
    [[nodiscard]] static Start that_waits(const Gate& is_in, const Gate& may_go)
    {
        Start start;
        start.in_load = [&] {
            is_in.open();
            may_go.wait();
        };
        return start;
    }
    /// The files in the cache whose names begin with `start`.
    [[nodiscard]] std::vector<std::filesystem::path> files(const std::string& start) const
    {
        std::vector<std::filesystem::path> found;
        for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "cache"))
            if (item.path().filename().string().starts_with(start)) found.push_back(item.path());
        return found;
    }
    [[nodiscard]] std::size_t marks() const { return files(".loading-").size(); }
    /// The texts in which the cache says why it set entries aside.
    [[nodiscard]] std::vector<std::string> reasons() const
    {
        std::vector<std::string> texts;
        for (const auto& path : files(""))
            if (path.extension() == ".reason") {
                const auto bytes = file_bytes(path);
                texts.emplace_back(bytes.begin(), bytes.end());
            }
        return texts;
    }
    static constexpr int k_recorded = static_cast<int>(Outcome::recorded);
    static constexpr int k_replayed = static_cast<int>(Outcome::replayed);
    TempDir dir;
};

TEST_F(LoadDeaths, OneCondemnsNothing)
{
    ASSERT_EQ(run(), k_recorded);
    EXPECT_EQ(marks(), 0U);
    EXPECT_EQ(run(that_dies()), k_died);
    EXPECT_EQ(marks(), 1U);
    EXPECT_EQ(run(), k_replayed);
    EXPECT_EQ(marks(), 0U) << "a load that succeeds ends the row";
    EXPECT_TRUE(reasons().empty());
}

TEST_F(LoadDeaths, AfterTwoInARowTheEntryIsSetAsideAndRecordedAnew)
{
    for (const bool ahead : {false, true}) {
        std::filesystem::remove_all(dir.path() / "cache");
        const Start start{.preloads = ahead};
        ASSERT_EQ(run(start), k_recorded);
        EXPECT_EQ(run(that_dies(start)), k_died);
        EXPECT_EQ(run(that_dies(start)), k_died);
        EXPECT_EQ(run(start), k_recorded);
        ASSERT_EQ(reasons().size(), 1U) << "said once";
        EXPECT_THAT(reasons().front(), testing::AllOf(testing::HasSubstr("2 processes in a row"),
                                                      testing::HasSubstr("1.9"), testing::HasSubstr("docs/trust.md")));
        EXPECT_EQ(marks(), 0U);
        EXPECT_EQ(run(start), k_replayed);
        EXPECT_EQ(run(that_dies(start)), k_died);
        EXPECT_EQ(run(start), k_replayed) << "the new entry has deaths of its own";
        EXPECT_EQ(reasons().size(), 1U);
    }
}

TEST_F(LoadDeaths, AtTheFirstLaunchCountAsThoseInALoad)
{
    for (const std::string at : {"instantiate", "exec.launch", "event.is_done"}) // event.is_done runs after the launch
        for (const bool ahead : {false, true})
            for (const bool preloads_by_name : {false, true}) {
                SCOPED_TRACE(at + (ahead ? ", preloaded" : "") + (preloads_by_name ? ", preloaded by name" : ""));
                std::filesystem::remove_all(dir.path() / "cache");
                const Start start{.preloads = ahead, .preloads_by_name = preloads_by_name};
                Start dies = that_dies(start);
                dies.at = at;
                ASSERT_EQ(run(start), k_recorded);
                EXPECT_EQ(run(dies), k_died);
                EXPECT_GE(marks(), 1U) << "a preload may have one of its own";
                EXPECT_EQ(run(start), k_replayed);
                EXPECT_EQ(marks(), 0U) << "a launch that is through ends the row";
                EXPECT_EQ(run(dies), k_died);
                EXPECT_EQ(run(dies), k_died);
                EXPECT_EQ(run(start), k_recorded);
                EXPECT_EQ(reasons().size(), 1U);
                EXPECT_EQ(marks(), 0U);
                EXPECT_EQ(run(start), k_replayed);
            }
}

/// The service is ready and idle, or had no work since its first call.
TEST_F(LoadDeaths, OfWhoLaunchesNothingAreNone)
{
    ASSERT_EQ(run(), k_recorded);
    for (const bool calls : {false, true})
        for (int i = 0; i < 2; ++i) {
            ChildProcess process([this, calls]() -> int {
                backends::register_backend(backends::make_fake_backend({.driver_version = "1.9"}));
                const Device device{"fake:0"};
                const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
                Cache cache{options({})};
                Function f = wrap(cache, device, program);
                (void)cache.preload({.wait = PreloadWait::all});
                const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_values, 5)),
                             y = device.allocate(k_values * 4);
                if (calls && f({{"x", x}, {"y", y}}) != Outcome::replayed) return 1;
                ::kill(::getpid(), SIGKILL);
                return 2;
            });
            EXPECT_EQ(process.wait(), k_died);
            EXPECT_EQ(marks(), 0U);
        }
    EXPECT_EQ(run(), k_replayed);
    EXPECT_TRUE(reasons().empty());
}

/// The launch breaks the device: all later queries fail, and the process may end in any way.
TEST_F(LoadDeaths, ADeviceThatALaunchBreaksIsOne)
{
    ASSERT_EQ(run(), k_recorded);
    const auto run_broken = [this] {
        ChildProcess process([this] {
            const auto fake = backends::make_fake_backend({.driver_version = "1.9"});
            backends::register_backend(fake);
            const Device device{"fake:0"};
            const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
            Cache cache{options({})};
            Function f = wrap(cache, device, program);
            const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_values, 5)),
                         y = device.allocate(k_values * 4);
            fake->inject({.entry = "event.is_done", .length = backends::FaultLength::for_ever});
            return static_cast<int>(f({{"x", x}, {"y", y}}));
        });
        return process.wait();
    };
    EXPECT_EQ(run_broken(), k_replayed);
    EXPECT_EQ(marks(), 1U);
    EXPECT_EQ(run_broken(), k_replayed);
    EXPECT_EQ(run(), k_recorded);
    EXPECT_EQ(reasons().size(), 1U);
}

TEST_F(LoadDeaths, WithASuccessInBetweenAreNoRow)
{
    ASSERT_EQ(run(), k_recorded);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run(that_dies()), k_died);
        EXPECT_EQ(run(), k_replayed);
    }
    EXPECT_TRUE(reasons().empty());
}

TEST_F(LoadDeaths, CountForTheSameDriverAlone)
{
    const Start other{.driver = "1.10"};
    ASSERT_EQ(run(), k_recorded);
    EXPECT_EQ(run(that_dies(other)), k_died);
    EXPECT_EQ(run(that_dies()), k_died);
    EXPECT_EQ(run(other), k_replayed) << "one death on each";
    EXPECT_EQ(run(that_dies(other)), k_died);
    EXPECT_EQ(run(that_dies(other)), k_died);
    EXPECT_EQ(run(), k_replayed) << "two deaths, elsewhere";
    EXPECT_TRUE(reasons().empty());
    EXPECT_EQ(run(other), k_recorded);
    EXPECT_EQ(reasons().size(), 1U);
}

TEST_F(LoadDeaths, LoadsThatGoOnAreNone)
{
    ASSERT_EQ(run(), k_recorded);
    const Gate is_in, may_go;
    ChildProcess first = begin(that_waits(is_in, may_go)), second = begin(that_waits(is_in, may_go));
    is_in.wait();
    is_in.wait();
    EXPECT_EQ(marks(), 2U);
    EXPECT_EQ(run(that_dies()), k_died);
    EXPECT_EQ(run(), k_replayed) << "one death, two that live";
    EXPECT_EQ(marks(), 2U);
    may_go.open();
    may_go.open();
    EXPECT_EQ(first.wait(), k_replayed);
    EXPECT_EQ(second.wait(), k_replayed);
    EXPECT_EQ(marks(), 0U);
}

/// A batch system ends all processes of a job at once, and each of them may be loading the same entry.
TEST_F(LoadDeaths, AtTheSameTimeAreOne)
{
    ASSERT_EQ(run(), k_recorded);
    const Gate is_in, may_go;
    const auto kill_a_job = [&] {
        std::vector<ChildProcess> job;
        for (int i = 0; i < 3; ++i) job.push_back(begin(that_waits(is_in, may_go)));
        for (int i = 0; i < 3; ++i) is_in.wait();
        for (const ChildProcess& process : job) ::kill(process.pid(), SIGKILL);
        for (ChildProcess& process : job) EXPECT_EQ(process.wait(), k_died);
        EXPECT_EQ(marks(), 3U);
    };
    kill_a_job();
    EXPECT_EQ(run(), k_replayed);
    EXPECT_EQ(marks(), 0U);
    kill_a_job();
    EXPECT_EQ(run(that_dies()), k_died) << "it was given the code after the job died: the second in the row";
    EXPECT_EQ(run(), k_recorded);
}

TEST_F(LoadDeaths, OfReadersLeaveNoFileAndCondemnNothing)
{
    ASSERT_EQ(run(), k_recorded);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(that_dies({.policy = Policy::read_only})), k_died);
    EXPECT_EQ(marks(), 0U);
    EXPECT_EQ(run({.policy = Policy::require_hit}), k_replayed);
    EXPECT_EQ(run(), k_replayed);
}

TEST_F(LoadDeaths, AFailureIsNone)
{
    ASSERT_EQ(run(), k_recorded);
    for (int i = 0; i < 3; ++i) {
        ChildProcess process([this] {
            const auto fake = backends::make_fake_backend({.driver_version = "1.9"});
            fake->inject({.entry = "load"});
            backends::register_backend(fake);
            const Device device{"fake:0"};
            const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
            Cache cache{options({.policy = Policy::read_write})};
            Function f = wrap(cache, device, program);
            (void)cache.preload({.wait = PreloadWait::all});
            return cache.statistics().cache_faults == 1 ? 0 : 1;
        });
        EXPECT_EQ(process.wait(), 0);
        EXPECT_EQ(marks(), 0U);
    }
    EXPECT_EQ(run(), k_replayed);
}

TEST_F(LoadDeaths, AnExitWhileAnotherThreadLoadsIsNone)
{
    ASSERT_EQ(run(), k_recorded);
    for (int i = 0; i < 2; ++i) {
        ChildProcess process([this]() -> int {
            const Gate is_in, never;
            std::thread([&] { (void)call(that_waits(is_in, never)); }).detach();
            is_in.wait();
            std::exit(0);
        });
        EXPECT_EQ(process.wait(), 0);
        EXPECT_EQ(marks(), 0U);
    }
}

/// Some drivers' compilers call exit() when they give up, which ends the process.
TEST_F(LoadDeaths, AnExitInsideOfALoadIsOne)
{
    ASSERT_EQ(run(), k_recorded);
    Start start;
    start.in_load = [] { std::exit(3); };
    EXPECT_EQ(run(start), 3);
    EXPECT_EQ(run(start), 3);
    EXPECT_EQ(run(), k_recorded);
    EXPECT_EQ(reasons().size(), 1U);
}

/// Counts the load marks that are made and that are removed.
class MarkCounter final : public ForwardingFileSystem {
public:
    int made = 0, removed = 0, synced = 0, reads_of_marks = 0;

protected:
    static bool is_one(const Path& path) { return path.filename().string().starts_with(".loading-"); }
    Result<void> write_new_in(FileSystem& inner, const Path& path, ByteView bytes, std::uint32_t mode,
                              Durability durability) override
    {
        if (is_one(path)) {
            ++made;
            synced += durability == Durability::synced ? 1 : 0;
        }
        return ForwardingFileSystem::write_new_in(inner, path, bytes, mode, durability);
    }
    Result<void> remove_in(FileSystem& inner, const Path& path) override
    {
        removed += is_one(path) ? 1 : 0;
        return ForwardingFileSystem::remove_in(inner, path);
    }
    Result<std::optional<FileContent>> read_in(FileSystem& inner, const Path& path, std::uint64_t limit) override
    {
        reads_of_marks += is_one(path) ? 1 : 0;
        return ForwardingFileSystem::read_in(inner, path, limit);
    }
};

TEST_F(LoadDeaths, AHitCostsOneFileAndLaterCallsNone)
{
    ASSERT_EQ(run(), k_recorded);
    backends::register_backend(backends::make_fake_backend({.driver_version = "1.9"}));
    const Device device{"fake:0"};
    const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
    const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_values, 5)),
                 y = device.allocate(k_values * 4);
    MarkCounter files;
    const auto hit = [&](Cache& cache) {
        Function f = wrap(cache, device, program);
        f({{"x", x}, {"y", y}});
        f({{"x", x}, {"y", y}});
        EXPECT_EQ(f.report().outcome, Outcome::replayed);
        return f;
    };
    Cache cache = CacheAccess::open(options({}), files);
    const Function first = hit(cache);
    EXPECT_EQ(files.made, 1);
    EXPECT_EQ(files.removed, 1);
    Cache second = CacheAccess::open(options({}), files);
    const Function again = hit(second);
    EXPECT_EQ(files.made, 2);
    EXPECT_EQ(files.removed, 2);
    EXPECT_EQ(files.synced, 0);
    EXPECT_EQ(files.reads_of_marks, 0);
}

} // namespace
} // namespace warmgraph::test::load_deaths_test
