// Tests CallArguments, which has the values that a call passes, and the values that are bound.
#include "call_fixture.hpp"
#include "warmgraph/call/call_arguments.hpp"

namespace warmgraph::test::arguments_test {
namespace {

class CallArgumentsTest : public CallTest {
protected:
    CallArguments parts{declare()};
};

TEST_F(CallArgumentsTest, AreBoundInTheOrderOfTheDeclarationAndWhatIsTheGraphsOwnIsLeftEmpty)
{
    parts.read(arguments());
    const auto& bindings = parts.bindings(5);
    ASSERT_EQ(bindings.regions.size(), 5U);
    EXPECT_EQ(bindings.regions[0], memory[0]);
    EXPECT_EQ(bindings.regions[1], memory[1]);
    EXPECT_EQ(bindings.regions[2], memory[2]);
    EXPECT_TRUE(bindings.regions[4].address.is_null());
}

TEST_F(CallArgumentsTest, AStateThatIsBoundElsewhereIsThereInTheNextCall)
{
    const MemoryRef elsewhere = allocate();
    parts.bind("s", elsewhere);
    parts.read(arguments());
    EXPECT_EQ(parts.frame().memory[2], elsewhere);
    EXPECT_EQ(parts.default_memory()[2], elsewhere);
}

TEST_F(CallArgumentsTest, OnlyAStateOfItsSizeIsBound)
{
    EXPECT_TRUE(failed_with(thrown_by([&] { parts.bind("x", memory[0]); }), ErrorCode::invalid_argument));
    EXPECT_TRUE(failed_with(thrown_by([&] { parts.bind("s", MemoryRef{memory[0].address, 32}); }),
                            ErrorCode::invalid_argument));
}

TEST_F(CallArgumentsTest, OfACaptureAreReadIntoAFrameOfItsOwn)
{
    parts.read(arguments());
    NativeCapture capture;
    capture.regions = {{"x", memory[1]}, {"y", memory[0]}};
    Frame moved;
    parts.read(capture, {}, moved);
    EXPECT_EQ(moved.memory[0], memory[1]);
    EXPECT_EQ(parts.frame().memory[0], memory[0]);
}

} // namespace
} // namespace warmgraph::test::arguments_test
