// Tests the replayer on CUDA, with device pointers and the caller's streams. This test is built for the fake driver and
// for a GPU.
#include "cuda_facade_fixture.hpp"
#include "replayer_fixture.hpp"

namespace warmgraph::test::cuda_test {
namespace {

class CudaReplayer : public CudaFacade {
protected:
    void record()
    {
        {
            device.prepare_recording();
            Cache cache{options()};
            Function f = add_one(cache);
            ASSERT_EQ(call(f, k_count), Outcome::recorded) << f.report().reason;
        }
        here = open_device("cuda"); // opened after CUPTI is attached (docs/replay.md)
    }
    [[nodiscard]] wgr_tensor tensor(const Buffer& buffer, std::uint64_t from = 0) const
    {
        return as_recorded({0, buffer.memory().address.flat() + from, buffer.memory().size - from});
    }
    /// A stream that was made with the driver, as a service makes one.
    [[nodiscard]] CUstream stream() const
    {
        CUstream made = nullptr;
        Driver::check(driver.call<decltype(&cuStreamCreate)>("cuStreamCreate")(&made, CU_STREAM_NON_BLOCKING));
        return made;
    }
    [[nodiscard]] Handle<wgr_function> load_add_one() const
    {
        const std::string where = (dir.path() / "cache").string();
        const auto cache = open_cache(options_of("toy", where));
        return load(cache.get(), here.get(), "f");
    }

    Driver driver;
    Handle<wgr_device> here{nullptr, wgr_device_close};
};

TEST_F(CudaReplayer, LaunchesInTheCallersStreamsOnTheCallersMemory)
{
    record();
    const auto f = load_add_one();
    ASSERT_TRUE(f) << wgr_last_error();
    const Buffer x = numbers(7), y = numbers(0), z = numbers(0);
    const CUstream first = stream(), second = stream();
    ASSERT_EQ(told(launch(f, {tensor(x), tensor(y)}, {}, first)), "wgr_ok");
    ASSERT_EQ(told(launch(f, {tensor(y), tensor(z)}, {}, second)), "wgr_ok") << "after the first: they share scratch";
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), second)), "wgr_ok");
    EXPECT_EQ(read(y), counting(8));
    EXPECT_EQ(read(z), counting(9));
    ASSERT_EQ(told(launch(f, {tensor(x), tensor(z)})), "wgr_ok") << "the legacy default stream";
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(read(z), counting(8));
}

TEST_F(CudaReplayer, GivesMemoryToThoseWhoHaveNone)
{
    record();
    const auto f = load_add_one();
    ASSERT_TRUE(f) << wgr_last_error();
    const Room x{here.get(), counting(3)}, y{here.get(), counting(0)};
    EXPECT_EQ(x.memory().base, 0U);
    ASSERT_EQ(told(launch(f, {x.tensor(), y.tensor()})), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(y.read<int32_t>(), counting(4));
}

TEST_F(CudaReplayer, RefusesOtherPlaces)
{
    record();
    const auto f = load_add_one();
    ASSERT_TRUE(f) << wgr_last_error();
    const Buffer x = numbers(7, 2 * k_count), y = numbers(0), host = device.allocate_host(k_bytes);
    expect_refused(launch(f, {tensor(x, 4), tensor(y)}), wgr_stale, "alignment");
    expect_refused(launch(f, {tensor(x), tensor(x, 256)}), wgr_stale, "overlap");
    expect_refused(launch(f, {tensor(x), tensor(host)}), wgr_stale, "'y' lies in page-locked host memory");
    expect_refused(launch(f, {tensor(x), tensor(host)}), wgr_stale, "'y' lies in page-locked host memory");
    expect_refused(launch(f, {tensor(x), tensor(y)}, {}, CU_STREAM_PER_THREAD), wgr_unsupported,
                   "a stream of your own");
    expect_refused(launch(f, {as_recorded({256, 4096, k_bytes}), tensor(y)}), wgr_invalid_argument,
                   "expected base 0 and a device pointer");
    EXPECT_EQ(read(y), counting(0));
}

TEST_F(CudaReplayer, StaysOutOfCaptures)
{
    record();
    const auto f = load_add_one();
    ASSERT_TRUE(f) << wgr_last_error();
    const Buffer x = numbers(7), y = numbers(0);
    const CUstream captured = stream(), other = stream();
    ASSERT_EQ(told(launch(f, {tensor(x), tensor(y)}, {}, captured)), "wgr_ok");
    CUgraph graph = nullptr;
    Driver::check(driver.call<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture")(
        captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    expect_refused(launch(f, {tensor(x), tensor(y)}, {}, captured), wgr_not_recordable, "being captured");
    expect_refused(launch(f, {tensor(x), tensor(y)}, {}, other), wgr_not_recordable,
                   "its last launch is being captured");
    Driver::check(driver.call<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(captured, &graph));
    driver.destroy(graph);
    EXPECT_EQ(told(launch(f, {tensor(x), tensor(y)}, {}, other)), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), other)), "wgr_ok");
    EXPECT_EQ(read(y), counting(8));
}

} // namespace
} // namespace warmgraph::test::cuda_test
