// Tests CallShapes, which chooses the sizes to which a call is padded.
#include "call_fixture.hpp"
#include "warmgraph/call/call_arguments.hpp"
#include "warmgraph/call/call_shapes.hpp"

namespace warmgraph::test::shapes_test {
namespace {

class CallShapesTest : public CallTest {
protected:
    [[nodiscard]] std::shared_ptr<const Declaration> padded()
    {
        Spec spec;
        spec.buckets = {Buckets{.dimensions = {{"x", 0}, {"y", 0}}, .rule = BucketRule::given, .sizes = {4, 8}}};
        return declare({}, std::move(spec));
    }
    [[nodiscard]] const Frame& frame_of(std::int64_t rows)
    {
        read.read(std::vector<Arg>{{"x", Tensor{large[0], DType::i32, {rows, 4}, {}}},
                                   {"y", Tensor{large[1], DType::i32, {rows, 4}, {}}}});
        return read.frame();
    }
    const std::vector<MemoryRef> large{*device->device->allocate(1024), *device->device->allocate(1024)};
    std::shared_ptr<const Declaration> declaration = padded();
    CallArguments read{declaration};
    CallShapes shapes{declaration, nullptr};
};

TEST_F(CallShapesTest, AreTheSmallestBucketThatHoldsTheCall)
{
    EXPECT_TRUE(shapes.is_padded());
    EXPECT_EQ(shapes.choose(frame_of(3), true).sizes, std::vector<std::int64_t>{4});
    EXPECT_EQ(shapes.choose(frame_of(5), true).sizes, std::vector<std::int64_t>{8});
    EXPECT_NE(shapes.choose(frame_of(9), true).outside, "");
}

TEST_F(CallShapesTest, WithoutAProfileNothingIsCountedOrToBeRecorded)
{
    EXPECT_FALSE(shapes.is_counted());
    EXPECT_TRUE(shapes.counted().empty());
    EXPECT_EQ(shapes.buckets(), (std::vector<std::vector<std::int64_t>>{{4, 8}}));
}

TEST_F(CallShapesTest, WithoutBucketsNothingIsPadded)
{
    const CallShapes plain{declare(), nullptr};
    EXPECT_FALSE(plain.is_padded());
    EXPECT_TRUE(plain.buckets().empty());
    plain.refuse_unpadded(frame_of(3));
}

TEST_F(CallShapesTest, ThatTheProfileAsksForAreWhatIsGiven)
{
    const ProfiledShape shape{{{"x", {4, 4}}}, {}, {}, 1};
    require_sizes(arguments(), shape, declaration->interface);
    const ProfiledShape other{{{"x", {8, 4}}}, {}, {}, 1};
    EXPECT_TRUE(failed_with(thrown_by([&] { require_sizes(arguments(), other, declaration->interface); }),
                            ErrorCode::invalid_argument));
    EXPECT_EQ(text_of(shape), "x[4,4]");
}

} // namespace
} // namespace warmgraph::test::shapes_test
