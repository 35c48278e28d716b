#include "expect_error.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/fake.hpp"

namespace warmgraph::backends::test::fake_faults_test {
namespace {

using warmgraph::test::failed_with;
using warmgraph::test::succeeded;

class FakeFaults : public testing::Test {
protected:
    std::shared_ptr<FakeBackend> backend = make_fake_backend();
    std::shared_ptr<Device> device = *backend->open("");
};

TEST_F(FakeFaults, FailTheNthCallOfOneEntryPointOnce)
{
    backend->inject({"create_stream", 2, FaultLength::once, {ErrorCode::out_of_memory, "no more"}});
    EXPECT_TRUE(succeeded(device->create_stream()));
    EXPECT_TRUE(failed_with(device->create_stream(), ErrorCode::out_of_memory, "create_stream: no more"));
    EXPECT_TRUE(succeeded(device->create_stream()));
}

TEST_F(FakeFaults, FailForEverUntilCleared)
{
    backend->inject({"", 1, FaultLength::for_ever, {ErrorCode::driver_failed, "gone"}});
    EXPECT_TRUE(failed_with(device->allocate(1), ErrorCode::driver_failed));
    EXPECT_TRUE(failed_with(device->create_stream(), ErrorCode::driver_failed));
    backend->clear_faults();
    EXPECT_TRUE(succeeded(device->create_stream()));
}

TEST_F(FakeFaults, ReachEveryEntryPointOfARecording)
{
    const auto record = [&]() -> Result<void> {
        const auto memory = device->allocate(256);
        if (!memory) return std::unexpected(memory.error());
        struct Release {
            Device& device;
            MemoryRef memory;
            ~Release() { device.release(memory); }
        } const release{*device, *memory};
        const auto stream = device->create_stream();
        if (!stream) return std::unexpected(stream.error());
        if (auto begun = (*stream)->begin_capture(); !begun) return begun;
        auto filled = (*stream)->fill({memory->address, Bytes(4), 256});
        const auto graph = (*stream)->end_capture();
        if (!filled) return filled;
        if (!graph) return std::unexpected(graph.error());
        const auto exec = device->instantiate(*graph);
        if (!exec) return std::unexpected(exec.error());
        if (auto launched = (*exec)->launch(**stream); !launched) return launched;
        return (*stream)->synchronize();
    };
    backend->clear_calls();
    ASSERT_TRUE(succeeded(record()));
    const auto calls = backend->calls();
    EXPECT_EQ(calls, (std::vector<std::string>{"allocate", "create_stream", "begin_capture", "fill", "end_capture",
                                               "instantiate", "exec.launch", "synchronize"}));
    for (std::uint64_t nth = 1; nth <= calls.size(); ++nth) {
        backend->inject({"", nth, FaultLength::once, {ErrorCode::driver_failed, "injected"}});
        EXPECT_TRUE(failed_with(record(), ErrorCode::driver_failed, "injected")) << calls[nth - 1];
        EXPECT_EQ(backend->live(), LiveObjects{}) << calls[nth - 1];
        backend->clear_faults();
    }
}

TEST_F(FakeFaults, CountWhatIsAlive)
{
    const auto memory = device->allocate(64);
    const auto shadow = device->reserve_shadow(64);
    ASSERT_TRUE(succeeded(memory));
    ASSERT_TRUE(succeeded(shadow));
    {
        const auto stream = device->create_stream();
        const auto module = device->compiler().compile("kernel noise(memory x, value n)\n", "");
        ASSERT_TRUE(succeeded(module));
        EXPECT_EQ(backend->live(), (LiveObjects{2, 1, 1, 0}));
    }
    device->release(*memory);
    device->release(*shadow);
    EXPECT_EQ(backend->live(), LiveObjects{});
    EXPECT_EQ(backend->call_count("compile"), 1U);
}

} // namespace
} // namespace warmgraph::backends::test::fake_faults_test
