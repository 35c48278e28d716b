// A process forks after it has used a cache. The child must be able to end, even if it destroys the parent's objects.
#include <csignal>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::forked_child_test {
namespace {

using namespace std::chrono_literals;

/// Waits for the child. Returns its exit status, or nullopt when it had to be killed.
std::optional<int> ended(pid_t child)
{
    int status = 0;
    for (int i = 0; i < 600; ++i) {
        if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
        std::this_thread::sleep_for(100ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return std::nullopt;
}

TEST(ForkedChild, ThatLeavesTheScopeOfACacheEnds)
{
    backends::register_backend(backends::make_fake_backend());
    const TempDir dir;
    const CacheOptions options = cache_options("toy", dir.path() / "cache");
    const Device device{"fake:0"};
    auto cache = std::make_unique<Cache>(options);
    Spec spec = x_to_y(i32, 32);
    auto f = std::make_unique<Function>(
        cache->wrap("f", device, spec, [](Recorder& r) { r.stream().copy(r["y"], r["x"], 128); }));
    const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(32, 5)), y = device.allocate(128);
    for (int i = 0; i < 3; ++i) static_cast<void>((*f)({{"x", x}, {"y", y}}));
    device.synchronize();
    std::this_thread::sleep_for(300ms); // after this time the writer threads wait for work
    const pid_t child = ::fork();
    if (child == 0) {
        f.reset();
        cache.reset();
        ::_exit(7);
    }
    EXPECT_EQ(ended(child), 7);
    EXPECT_EQ((*f)({{"x", x}, {"y", y}}), Outcome::replayed) << "the parent goes on";
}

} // namespace
} // namespace warmgraph::test::forked_child_test
