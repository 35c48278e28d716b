// One process records with the whole library, and another one replays without it.
#include "process_fixture.hpp"

namespace llm::replay_only_test {
namespace {

using testing::HasSubstr;

TEST_F(Process, ReplayOnlyReplaysWhatHelloRecorded)
{
    const ProcessResult before = run(carried(REPLAY_ONLY_BINARY), {});
    EXPECT_EQ(before.code, 1);
    EXPECT_THAT(before.errors, HasSubstr("open the cache: cache folder"));
    const ProcessResult hello = run(carried(HELLO_BINARY), {});
    ASSERT_EQ(hello.code, 0) << hello.errors;
    const ProcessResult replayed = run(carried(REPLAY_ONLY_BINARY), {});
    ASSERT_EQ(replayed.code, 0) << replayed.errors;
    EXPECT_EQ(replayed.output, "y begins with 42, replayed\n");
    const ProcessResult other = run(carried(REPLAY_ONLY_BINARY), {"opencl", "hello", "other"});
    EXPECT_EQ(other.code, 1);
    EXPECT_THAT(other.errors, HasSubstr("load: there is no entry of 'other'"));
}

} // namespace
} // namespace llm::replay_only_test
