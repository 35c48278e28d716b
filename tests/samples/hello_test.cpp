// Runs the smallest sample in two processes.
#include "process_fixture.hpp"

namespace llm::hello_test {
namespace {

using testing::StartsWith;

TEST_F(Process, HelloIsRecordedThenReplayed)
{
    const ProcessResult cold = run(carried(HELLO_BINARY), {});
    ASSERT_EQ(cold.code, 0) << cold.errors;
    EXPECT_THAT(cold.output, StartsWith("7 * 6 = 42, recorded\n"));
    const ProcessResult warm = run(carried(HELLO_BINARY), {});
    ASSERT_EQ(warm.code, 0) << warm.errors;
    EXPECT_THAT(warm.output, StartsWith("7 * 6 = 42, replayed\n"));
}

} // namespace
} // namespace llm::hello_test
