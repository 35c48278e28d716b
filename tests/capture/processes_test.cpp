// Promise C3: many processes miss the same function at once. One process records. The others run the function eagerly,
// or replay when the recording is done. No process waits, and if the recording process is killed, another one takes its
// place.
#include <chrono>
#include <thread>

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test::processes_test {
namespace {

constexpr int k_processes = 16;

// OpenCL does not survive fork(), so the children are forked before any device is opened.
class Processes : public testing::Test {
protected:
    /// Makes one call in a child. The child's exit code is the outcome, or 99 for a wrong result.
    pid_t spawn(int startup_pipe = -1)
    {
        const pid_t child = ::fork();
        if (child != 0) return child;
        std::exit(child_main(startup_pipe));
    }
    int child_main(int startup_pipe)
    {
        try {
            use_pocl_cache();
            const CacheOptions options = cache_options("toy", dir.path() / "cache");
            Device device{"opencl"};
            const Program program = device.program("small", k_small_kernels);
            Cache cache{options};
            Spec spec = x_to_y(f32, 64, {program});
            Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
                if (startup_pipe >= 0) {
                    [[maybe_unused]] const auto written = ::write(startup_pipe, "r", 1); // recording has begun
                    ::pause();
                }
                r.stream().launch(program, "add_one", {.grid = {4, 1, 1}, .block = {16, 1, 1}}, r["x"], r["y"]);
            });
            const Buffer x = device.upload<float>(std::vector<float>(64, 1.0F)), y = device.allocate(256);
            const Outcome outcome = f({{"x", x}, {"y", y}});
            device.synchronize();
            return y.read<float>() == std::vector<float>(64, 2.0F) ? static_cast<int>(outcome) : 99;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "child: %s\n", error.what());
            return 98;
        }
    }
    static int wait_for(pid_t child)
    {
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
    }
    TempDir dir;
};

TEST_F(Processes, SixteenThatMissAtOnceRecordOnce)
{
    std::vector<pid_t> children;
    for (int i = 0; i < k_processes; ++i) children.push_back(spawn());
    int recorded = 0, others = 0;
    for (const pid_t child : children) {
        const int outcome = wait_for(child);
        recorded += outcome == static_cast<int>(Outcome::recorded) ? 1 : 0;
        others += outcome == static_cast<int>(Outcome::replayed) || outcome == static_cast<int>(Outcome::eager) ? 1 : 0;
    }
    EXPECT_EQ(recorded, 1);
    EXPECT_EQ(others, k_processes - 1);
    EXPECT_EQ(wait_for(spawn()), static_cast<int>(Outcome::replayed));
}

TEST_F(Processes, AKilledLeaderIsReplaced)
{
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t leader = spawn(pipe_ends[1]);
    ::close(pipe_ends[1]); // then the read below ends when the leader ends early
    char byte = 0;
    ASSERT_EQ(::read(pipe_ends[0], &byte, 1), 1) << "the leader records and holds the lock";
    EXPECT_EQ(wait_for(spawn()), static_cast<int>(Outcome::eager)) << "the lock is tried, never waited for";
    ::kill(leader, SIGKILL);
    EXPECT_EQ(wait_for(leader), 100 + SIGKILL);
    EXPECT_EQ(wait_for(spawn()), static_cast<int>(Outcome::recorded));
    EXPECT_EQ(wait_for(spawn()), static_cast<int>(Outcome::replayed));
    ::close(pipe_ends[0]);
}

} // namespace
} // namespace warmgraph::test::processes_test
