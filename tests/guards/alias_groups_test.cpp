#include "matchers.hpp"
#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph::guards::alias_groups_test {
namespace {

TensorArg bytes_at(std::uint64_t base, std::uint64_t offset, std::int64_t count)
{
    TensorArg tensor;
    tensor.base = base;
    tensor.offset = offset;
    tensor.rank = 1;
    tensor.sizes[0] = count;
    tensor.strides[0] = 1;
    return tensor;
}

std::vector<std::uint32_t> groups(const std::vector<TensorArg>& tensors) { return alias_groups(tensors); }

TEST(AliasGroups, LeaveNeighboursAlone)
{
    EXPECT_THAT(groups({bytes_at(1, 0, 64), bytes_at(1, 64, 64), bytes_at(1, 128, 1)}), ElementsAre(0, 1, 2));
}
TEST(AliasGroups, FindOneByteOfOverlap)
{
    EXPECT_THAT(groups({bytes_at(1, 0, 65), bytes_at(1, 64, 64)}), ElementsAre(0, 0));
}
TEST(AliasGroups, FindNestedTensors)
{
    EXPECT_THAT(groups({bytes_at(1, 16, 4), bytes_at(1, 0, 64), bytes_at(1, 32, 4)}), ElementsAre(0, 0, 0));
}
TEST(AliasGroups, AreTransitive)
{
    EXPECT_THAT(groups({bytes_at(1, 20, 10), bytes_at(1, 100, 4), bytes_at(1, 0, 11), bytes_at(1, 10, 11)}),
                ElementsAre(0, 1, 0, 0));
}
TEST(AliasGroups, DoNotCrossBases)
{
    EXPECT_THAT(groups({bytes_at(1, 0, 64), bytes_at(2, 0, 64), bytes_at(2, 8, 4)}), ElementsAre(0, 1, 1));
}
TEST(AliasGroups, IgnoreTensorsWithoutElements)
{
    EXPECT_THAT(groups({bytes_at(1, 8, 0), bytes_at(1, 0, 64), bytes_at(1, 8, 0), bytes_at(1, 8, 4)}),
                ElementsAre(0, 1, 2, 1));
}
TEST(AliasGroups, OfNothingAreNothing) { EXPECT_THAT(groups({}), IsEmpty()); }
TEST(AliasGroups, OfTheSameRangeFollowTheFirst)
{
    EXPECT_THAT(groups({bytes_at(1, 4, 4), bytes_at(1, 4, 4)}), ElementsAre(0, 0));
}

std::vector<std::optional<std::int64_t>> distances(const std::vector<TensorArg>& tensors)
{
    const std::vector<std::string> names(tensors.size(), "x");
    auto specs = describe(tensors, names, "opencl:");
    guard_distances(specs, tensors);
    std::vector<std::optional<std::int64_t>> result;
    for (const TensorSpec& spec : specs) result.push_back(spec.distance);
    return result;
}

TEST(Distances, AreThoseFromTheFirstOfTheGroupInEitherDirection)
{
    EXPECT_THAT(distances({bytes_at(1, 16, 4), bytes_at(1, 0, 64), bytes_at(1, 32, 4)}), ElementsAre(0, -16, 16));
}
TEST(Distances, AreOfTensorsThatOverlapAlone)
{
    EXPECT_THAT(distances({bytes_at(1, 0, 64), bytes_at(2, 8, 4), bytes_at(1, 128, 8), bytes_at(2, 8, 4)}),
                ElementsAre(std::nullopt, 0, std::nullopt, 0));
}
TEST(Distances, AreForgotten)
{
    const std::vector<TensorArg> tensors{bytes_at(1, 0, 64), bytes_at(1, 8, 4)};
    auto specs = describe(tensors, std::vector<std::string>{"x", "y"}, "opencl:");
    const auto without = specs;
    guard_distances(specs, tensors);
    EXPECT_NE(specs, without);
    forget_distances(specs);
    EXPECT_EQ(specs, without);
}

TEST(ExtentBytes, CountsToTheLastElementOfAStridedTensor)
{
    TensorArg tensor;
    tensor.dtype = DType::f32;
    tensor.rank = 2;
    tensor.sizes = {3, 4};
    tensor.strides = {10, 2};
    EXPECT_EQ(extent_bytes(tensor), (2 * 10 + 3 * 2 + 1) * 4U);
    tensor.strides = {-10, 2};
    EXPECT_EQ(extent_bytes(tensor), (2 * 10 + 3 * 2 + 1) * 4U);
    tensor.sizes[1] = 0;
    EXPECT_EQ(extent_bytes(tensor), 0U);
    tensor.rank = 0;
    EXPECT_EQ(extent_bytes(tensor), 4U);
}

TEST(ExtentBytes, SaturatesInsteadOfWrapping)
{
    TensorArg tensor = bytes_at(1, 8, std::int64_t{1} << 62);
    tensor.strides[0] = 16;
    EXPECT_EQ(extent_bytes(tensor), ~std::uint64_t{0});
    EXPECT_THAT(groups({tensor, bytes_at(1, std::uint64_t{1} << 60, 1)}), ElementsAre(0, 0));
}

TEST(AliasGroups, UseTheExtentOfStridedTensors)
{
    TensorArg column = bytes_at(1, 0, 3);
    column.strides[0] = 100; // the elements are then at bytes 0, 100 and 200
    EXPECT_THAT(groups({column, bytes_at(1, 150, 4), bytes_at(1, 201, 4)}), ElementsAre(0, 0, 2));
}

TEST(AlignmentClass, IsTheLargestPowerOfTwoUpTo256)
{
    EXPECT_EQ(alignment_class(0), 256U);
    EXPECT_EQ(alignment_class(1), 1U);
    EXPECT_EQ(alignment_class(24), 8U);
    EXPECT_EQ(alignment_class(128), 128U);
    EXPECT_EQ(alignment_class(4096), 256U);
    EXPECT_EQ(alignment_class(std::uint64_t{1} << 63), 256U);
}

} // namespace
} // namespace warmgraph::guards::alias_groups_test
