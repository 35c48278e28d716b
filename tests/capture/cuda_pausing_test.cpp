// Device code is kept while calls may record, and not while all calls replay. This test is built twice, like
// cuda_facade_test.cpp.
#include <atomic>
#include <thread>

#include "cuda_facade_fixture.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/facade/cache_access.hpp"

namespace warmgraph::test::cuda_pausing_test {
namespace {

class CudaPausing : public CudaFacade {
protected:
    CudaPausing() { device.prepare_recording(); }

    [[nodiscard]] CacheOptions manual() const
    {
        CacheOptions result = options();
        result.pauses_recording = false;
        return result;
    }
    [[nodiscard]] static std::string pause(const Cache& cache)
    {
        const Cache* const one = &cache;
        return CacheAccess::pause_recording({&one, 1});
    }
    /// Another library in the process. It computes y = x + 1 with its own code.
    class Foreign {
    public:
        explicit Foreign(const Driver& driver) : m_driver(driver)
        {
            const auto backend = backends::make_cuda_backend();
            const auto opened = *backend->open("");
            const auto compiled = opened->compiler().compile(k_program, "");
            const Bytes image = *(*compiled)->image();
            Driver::check(driver.call<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&m_module, image.data()));
            Driver::check(driver.call<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&m_function, m_module,
                                                                                             "add_scalar"));
        }
        void enqueue(Recorder& r) const
        {
            r.stream().copy(r["y"], r["x"], k_bytes);
            CUdeviceptr y = r["y"].flat();
            int32_t one = 1, count = k_count;
            void* params[] = {&y, &one, &count};
            Driver::check(m_driver.call<decltype(&cuLaunchKernel)>("cuLaunchKernel")(
                m_function, 2, 1, 1, 128, 1, 1, 0, static_cast<CUstream>(r.stream().native()), params, nullptr));
        }

    private:
        const Driver& m_driver;
        CUmodule m_module = nullptr; // the module stays loaded until the process ends
        CUfunction m_function = nullptr;
    };
    [[nodiscard]] Function foreign(Cache& cache, const char* name, const Foreign& code) const
    {
        return cache.wrap(name, device, spec(), [&code](Recorder& r) { code.enqueue(r); });
    }
    const Driver driver;
};

TEST_F(CudaPausing, ManyReplaysInARowPauseItAndTheNextMissBeginsItAgain)
{
    {
        Cache cache{options()};
        Function f = add_one(cache);
        ASSERT_EQ(call(f, 256), Outcome::recorded) << f.report().reason;
        for (int i = 0; i < 600; ++i) ASSERT_EQ(call(f, 256), Outcome::replayed);
        EXPECT_EQ(pause(cache), "") << "it was paused within a minute of a recording";
    }
    Cache cache{options()}; // stands for the next process, which only replays
    Function f = add_one(cache);
    device.prepare_recording();
    for (int i = 0; i < 256; ++i) ASSERT_EQ(call(f, 256), Outcome::replayed); // the first call loads the entry
    EXPECT_EQ(pause(cache), "") << "it was paused too early";
    device.prepare_recording();
    for (int i = 0; i < 256; ++i) ASSERT_EQ(call(f, 256), Outcome::replayed);
    EXPECT_THAT(pause(cache), HasSubstr("no device code is kept"));
    EXPECT_EQ(call(f, 128), Outcome::recorded) << f.report().reason;
    EXPECT_EQ(pause(cache), "") << "the miss did not begin it again";
    EXPECT_EQ(call(f, 256), Outcome::replayed);
}

TEST_F(CudaPausing, ItIsNotPausedByItselfWhereTheProgramSaysSo)
{
    {
        Cache cache{options()};
        Function f = add_one(cache);
        ASSERT_EQ(call(f, 256), Outcome::recorded) << f.report().reason;
    }
    Cache cache{manual()};
    Function f = add_one(cache);
    for (int i = 0; i < 600; ++i) ASSERT_EQ(call(f, 256), Outcome::replayed);
    EXPECT_EQ(pause(cache), "");
}

TEST_F(CudaPausing, AFunctionThatWasNotCalledYetKeepsItGoing)
{
    Cache cache{manual()};
    Function f = add_one(cache);
    const Function other = cache.wrap("other", device, spec(), [](Recorder&) {});
    ASSERT_EQ(call(f, 256), Outcome::recorded) << f.report().reason;
    EXPECT_THAT(pause(cache), HasSubstr("'other' was not called yet"));
}

TEST_F(CudaPausing, CodeThatWasLoadedInAPauseIsRefusedAndTheNextProcessDoesNotPause)
{
    const Buffer x = numbers(5), y = device.allocate(k_bytes);
    {
        Cache cache{manual()};
        const Foreign early{driver};
        Function f = foreign(cache, "f", early);
        ASSERT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded) << f.report().reason;
        ASSERT_EQ(pause(cache), "");
        const Foreign late{driver};
        Function g = foreign(cache, "g", late);
        EXPECT_EQ(g({{"x", x}, {"y", y}}), Outcome::refused);
        EXPECT_THAT(g.report().reason, HasSubstr("while recording was paused"));
        EXPECT_EQ(read(y), counting(6)) << "the call has its result all the same";
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::replayed);
    }
    { // stands for the next process
        Cache cache{manual()};
        const Foreign code{driver};
        Function g = foreign(cache, "g", code);
        EXPECT_EQ(g({{"x", x}, {"y", y}}), Outcome::recorded) << g.report().reason;
        for (int i = 0; i < 2; ++i) EXPECT_THAT(pause(cache), HasSubstr("an earlier process could not record 'g'"));
    }
    Cache cache{manual()};
    const Foreign code{driver};
    Function g = foreign(cache, "g", code);
    EXPECT_EQ(g({{"x", x}, {"y", y}}), Outcome::replayed) << g.report().reason;
    EXPECT_EQ(pause(cache), "") << "the loss was made good once";
}

/// During the pause, a module may have been unloaded and its handle used again, and the library cannot know this.
TEST_F(CudaPausing, ModulesOfTheProgramsOwnAreUnknownAfterAPause)
{
    Cache cache{manual()};
    const Foreign code{driver};
    Function f = foreign(cache, "f", code);
    const Buffer x = numbers(5), y = device.allocate(k_bytes);
    ASSERT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded) << f.report().reason;
    ASSERT_EQ(pause(cache), "");
    Function again = foreign(cache, "again", code);
    EXPECT_EQ(again({{"x", x}, {"y", y}}), Outcome::refused);
    EXPECT_THAT(again.report().reason, HasSubstr("while recording was paused"));
    EXPECT_EQ(read(y), counting(6));
}

TEST_F(CudaPausing, ThreadsReplayWhileItIsPausedAndBegunAgain)
{
    Cache cache{manual()};
    Function f = add_one(cache);
    ASSERT_EQ(call(f, 256), Outcome::recorded) << f.report().reason;
    std::atomic<bool> ends = false;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            Stream stream = device.stream();
            const Buffer x = numbers(5), y = device.allocate(k_bytes);
            while (!ends) {
                ASSERT_EQ(f(stream, {{"x", x}, {"y", y}}), Outcome::replayed);
                stream.synchronize();
                ASSERT_EQ(y.read<int32_t>(), counting(6));
            }
        });
    int paused = 0;
    for (int i = 0; i < 50; ++i) {
        paused += pause(cache).empty() ? 1 : 0;
        device.prepare_recording();
    }
    ends = true;
    threads.clear();
    EXPECT_EQ(paused, 50);
}

} // namespace
} // namespace warmgraph::test::cuda_pausing_test
