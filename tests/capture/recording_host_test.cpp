// Records a callable that works on the host, in page-locked and managed regions.
#include "recording_fixture.hpp"

namespace warmgraph::test::recording_host_test {
namespace {

class HostRegion : public RecordingTest {
protected:
    HostRegion() { host = declare_host("host", RegionKind::input, k_count); }
    static std::int32_t& value(Recorder& r) { return *r["host"].pointer<std::int32_t>(); }
    MemoryRef host;
};

TEST_F(HostRegion, IsReadWithItsRealContentsAndThenWithNeighbours)
{
    std::vector<std::int32_t> seen;
    const auto recording = recorded([&](Recorder& r) {
        seen.push_back(value(r));
        add(r);
    });
    ASSERT_TRUE(recording) << recording.error().message;
    ASSERT_GT(seen.size(), 3U);
    EXPECT_EQ(seen[0], k_count) << "the answer";
    EXPECT_EQ(seen[1], k_count) << "the first capture";
    EXPECT_THAT(seen, Each(AnyOf(k_count, k_count + 1))) << "never arbitrary bytes: it may be a length";
    EXPECT_THAT(seen, Contains(k_count + 1)) << "the moved capture";
}

TEST_F(HostRegion, ThatDecidesWhatIsEnqueuedIsRefused)
{
    expect_refused([&](Recorder& r) { launch(r, kernel("add", {r["y"], r["x"]}, value(r))); },
                   AllOf(HasSubstr("kernel add (node 0)"), HasSubstr("parameter 2 byte 0"), HasSubstr("0x40")));
    EXPECT_EQ(read(y), all(6)) << "the answer";
    *host.address.pointer<std::int32_t>() = 2;
    expect_refused(
        [&](Recorder& r) {
            for (std::int32_t i = 0; i < value(r); ++i) add(r);
        },
        HasSubstr("node"));
}

TEST_F(HostRegion, ThatTheCallableWritesIsRefusedAndHoldsWhatItWrote)
{
    expect_refused(
        [&](Recorder& r) {
            value(r) += 3;
            add(r);
        },
        HasSubstr("writes region 'host' on the host"));
    EXPECT_EQ(*host.address.pointer<std::int32_t>(), k_count + 3) << "by the answer alone";
}

/// If the callable writes the value that the memory already has, comparing the memory does not show it. A trial has
/// other contents, and shows it.
TEST_F(HostRegion, ThatTheCallableWritesWithWhatItHoldsIsRefused)
{
    expect_refused(
        [&](Recorder& r) {
            value(r) = k_count;
            add(r);
        },
        HasSubstr("writes region 'host' on the host"));
}

TEST_F(HostRegion, ThatKernelsReadAndWriteIsRecorded)
{
    const MemoryRef out = declare_host("out", RegionKind::output, 0);
    auto recording = take(recorded([&](Recorder& r) {
        add(r);
        launch(r, kernel("add", {r["out"], r["host"]}, k_count));
    }));
    EXPECT_EQ(read(out), all(k_count + 1));
    EXPECT_EQ(recording.entry.graph.regions.at(2).space, cachefmt::MemorySpace::host);
    const MemoryRef other_y = make(k_count, 0), other_out = *device->allocate_host(k_count * 4ULL);
    const MemoryRef other_host = *device->allocate_host(k_count * 4ULL);
    std::fill_n(other_host.address.pointer<std::int32_t>(), k_count, 20);
    ASSERT_TRUE(replay(recording, {x, other_y, other_host, other_out}));
    EXPECT_EQ(read(other_out), all(21));
}

TEST_F(RecordingTest, ManagedMemoryIsRefusedBeforeAnythingIsRun)
{
    device->managed = x.address.flat();
    bool was_called = false;
    expect_refused([&](Recorder&) { was_called = true; },
                   AllOf(HasSubstr("'x' is managed memory"), HasSubstr("Device::allocate_host")));
    EXPECT_FALSE(was_called);
    EXPECT_EQ(device->preparations, 0);
}

} // namespace
} // namespace warmgraph::test::recording_host_test
