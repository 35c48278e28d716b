// Tests the driver's own graph of a capture.
#include "conformance.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test::conformance_captured_test {
namespace {

class ConformanceCaptured : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, ConformanceCaptured, testing::ValuesIn(subjects()), name_of);

TEST_P(ConformanceCaptured, IsInstantiatedAsItIs)
{
    const Address x = allocate(all(1));
    std::unique_ptr<GraphExec> exec;
    {
        RawGraph graph = capture([&] {
            EXPECT_TRUE(succeeded(stream->launch(scale(x, 3))));
            EXPECT_TRUE(succeeded(stream->launch(add_scalar(x, 4))));
        });
        exec = take(device->recording().instantiate_captured(graph));
        if (graph.native != nullptr) { // the driver's graph is used, so a change of the nodes has no effect
            graph.nodes.clear();
            const auto whole = take(device->recording().instantiate_captured(graph));
            ASSERT_TRUE(succeeded(whole->launch(*stream)));
            finish();
            EXPECT_EQ(read(x), all(7));
            const auto ones = all(1);
            ASSERT_TRUE(succeeded(device->upload(x, std::as_bytes(std::span(ones)))));
        }
    }
    ASSERT_TRUE(succeeded(exec->launch(*stream)));
    ASSERT_TRUE(succeeded(exec->launch(*stream)));
    finish();
    EXPECT_EQ(read(x), all(25));
    const RawGraph built{{{RawFill{x, Bytes(4), k_count * 4}, {}}}}; // not captured, so without a graph of the driver
    exec = take(device->recording().instantiate_captured(built));
    ASSERT_TRUE(succeeded(exec->launch(*stream)));
    finish();
    EXPECT_EQ(read(x), all(0));
}

} // namespace
} // namespace warmgraph::backends::test::conformance_captured_test
