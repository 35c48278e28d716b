// Tests CallableRunner, which runs the callable itself in the caller's stream.
#include "call_fixture.hpp"
#include "warmgraph/call/call_arguments.hpp"
#include "warmgraph/call/callable_runner.hpp"

namespace warmgraph::test::runner_test {
namespace {

class RunnerTest : public CallTest {
protected:
    [[nodiscard]] std::shared_ptr<const Declaration> counted()
    {
        return declare([this](Recorder&) { ++runs; });
    }
    void SetUp() override { read.read(arguments()); }
    int runs = 0;
    std::shared_ptr<const Declaration> declaration = counted();
    CallArguments read{declaration};
    std::shared_ptr<LastStream> last = std::make_shared<LastStream>();
    CallableRunner runner{declaration, last};
    Phases phases;
};

TEST_F(RunnerTest, RunsItOnceForAnAnswer)
{
    EXPECT_EQ(runner.run(read.frame(), device->default_stream, phases).function, "f");
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(last->stream, device->default_stream);
}

TEST_F(RunnerTest, AMeasuredRunIsAPhase)
{
    runner.run_measured(read.frame(), device->default_stream, phases);
    ASSERT_EQ(phases.list().size(), 1U);
    EXPECT_EQ(phases.list().front().first, "eager run");
}

TEST_F(RunnerTest, ARunInAnotherStreamComesAfterTheLastOne)
{
    runner.run(read.frame(), device->default_stream, phases);
    const std::shared_ptr<backends::Stream> other = *device->device->create_stream();
    backend->clear_calls();
    runner.run(read.frame(), other, phases);
    EXPECT_EQ(backend->call_count("record_event"), 1U);
    EXPECT_EQ(backend->call_count("wait"), 1U);
    runner.run(read.frame(), other, phases);
    EXPECT_EQ(backend->call_count("wait"), 1U);
}

TEST_F(RunnerTest, WhereTheStreamsCannotBeOrderedTheHostWaits)
{
    runner.run(read.frame(), device->default_stream, phases);
    const std::shared_ptr<backends::Stream> other = *device->device->create_stream();
    backend->clear_calls();
    backend->inject({.entry = "record_event"});
    runner.run(read.frame(), other, phases);
    EXPECT_EQ(backend->call_count("synchronize"), 1U);
}

TEST_F(RunnerTest, WhatIsDestroyedIsNotRunForCaptures)
{
    const RunOnce for_captures = runner.capture_runs();
    ScratchPool scratch{device->device, ScratchPool::Kind::memory};
    RunContext context;
    const Frame& frame = read.frame();
    const RunInputs inputs{frame.tensors, frame.memory, frame.scalars, frame.values};
    EXPECT_TRUE(for_captures(inputs, scratch, device->default_stream, context));
    EXPECT_EQ(runs, 1);
    runner.retire();
    EXPECT_TRUE(failed_with(for_captures(inputs, scratch, device->default_stream, context), ErrorCode::not_recordable));
    EXPECT_EQ(runs, 1);
}

TEST_F(RunnerTest, WithoutACallableNothingRunsIntoACapture)
{
    CallableRunner loaded{declare(), last};
    EXPECT_TRUE(failed_with(thrown_by([&] { loaded.run_into_capture(read.frame(), device->default_stream); }),
                            ErrorCode::unsupported));
}

} // namespace
} // namespace warmgraph::test::runner_test
