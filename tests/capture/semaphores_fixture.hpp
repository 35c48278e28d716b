// A fixture for external semaphores on the fake driver. The driver's context breaks if a wait's value never comes, or
// if a value is signalled twice.
#pragma once

#include <stdexcept>

#include "cache_options.hpp"
#include "cuda_or_fake.hpp"
#include "facade_fixture.hpp"

namespace warmgraph::test {

using std::int32_t;

inline constexpr int32_t k_semaphore_count = 32;
inline constexpr std::uint64_t k_semaphore_bytes = k_semaphore_count * 4;
inline constexpr Launch k_semaphore_launch{.grid = {1, 1, 1}, .block = {k_semaphore_count, 1, 1}};

/// Two semaphores: one between another API's work and the graph, one between the graph and later work of that API.
struct Channel {
    std::shared_ptr<void> ready, shown;
};

class Semaphores : public testing::Test {
protected:
    Semaphores() { choose_driver(); }
    [[nodiscard]] CacheOptions options() const
    {
        CacheOptions options = cache_options("toy", dir.path() / "cache");
        options.probing_ms = 0; // makes only the first probes, which are always made
        return options;
    }
    [[nodiscard]] static Spec spec_of(const Program& program, const Channel& channel)
    {
        Spec spec = x_to_y(i32, k_semaphore_count);
        spec.scalars = {scalar("frame", u64, 0, 1'000'000)};
        spec.code = {program};
        spec.version = "1"; // Cache::load needs a version
        spec.semaphores = {{"ready", channel.ready.get()}, {"shown", channel.shown.get()}};
        return spec;
    }
    [[nodiscard]] Channel channel(std::uint64_t ready = 0, std::uint64_t shown = 0) const
    {
        return {fake.semaphore(ready), fake.semaphore(shown)};
    }
    static void check(CUresult status)
    {
        if (status != CUDA_SUCCESS) throw std::runtime_error(fmt::format("status {}", static_cast<int>(status)));
    }
    void wait(const std::shared_ptr<void>& semaphore, std::uint64_t value, void* stream) const
    {
        auto* const handle = static_cast<CUexternalSemaphore>(semaphore.get());
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params{};
        params.params.fence.value = value;
        check(fake.entry<decltype(::cuWaitExternalSemaphoresAsync)>("cuWaitExternalSemaphoresAsync")(
            &handle, &params, 1, static_cast<CUstream>(stream)));
    }
    void signal(const std::shared_ptr<void>& semaphore, std::uint64_t value, void* stream) const
    {
        auto* const handle = static_cast<CUexternalSemaphore>(semaphore.get());
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params{};
        params.params.fence.value = value;
        check(fake.entry<decltype(::cuSignalExternalSemaphoresAsync)>("cuSignalExternalSemaphoresAsync")(
            &handle, &params, 1, static_cast<CUstream>(stream)));
    }
    /// A callable that waits until the frame is ready, computes y = x + 1, and signals that the frame may be shown.
    [[nodiscard]] Callable work(const Program& program, const Channel& channel) const
    {
        return [this, program, channel](Recorder& r) {
            const auto frame = r.scalar<std::uint64_t>("frame");
            wait(channel.ready, frame, r.stream().native());
            const Address scratch = r.alloc("scratch", k_semaphore_bytes);
            r.stream().copy(scratch, r["x"], k_semaphore_bytes);
            r.stream().launch(program, "add_scalar", k_semaphore_launch, scratch, int32_t{1}, k_semaphore_count);
            r.stream().copy(r["y"], scratch, k_semaphore_bytes);
            signal(channel.shown, frame, r.stream().native());
        };
    }
    TempDir dir;
    FakeCuda fake;
};

} // namespace warmgraph::test
