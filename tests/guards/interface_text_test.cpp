// Writes the declaration of a function as text, and reads it back.
#include <gtest/gtest.h>

#include "warmgraph/guards/interface_text.hpp"

namespace warmgraph::test::interface_text_test {
namespace {

using cachefmt::RegionKind;
using guards::interface_text;
using guards::parse_interface;

const std::vector<RegionKind> k_kinds{RegionKind::input, RegionKind::input, RegionKind::output, RegionKind::state,
                                      RegionKind::weights};
const std::vector<NumberDecl> k_scalars{{"position", DType::i32, std::pair{0.0, 255.0}},
                                        {"scale", DType::f32, std::nullopt},
                                        {"half", DType::f64, std::pair{-0.5, 0.5}},
                                        {"handle", DType::u64, std::nullopt}};

std::vector<ScalarRange> ranges_of(const std::vector<NumberDecl>& scalars)
{
    std::vector<ScalarRange> ranges;
    for (const NumberDecl& scalar : scalars) ranges.push_back(range_of(scalar).value());
    return ranges;
}

TEST(InterfaceText, CountsRunsOfOneKindAndTellsRanges)
{
    const auto scalars = std::span(k_scalars).first(1);
    EXPECT_EQ(interface_text(k_kinds, scalars, ranges_of({k_scalars.front()})),
              "2 input, 1 output, 1 state, 1 weights; scalar position i32 [0, 255]");
    EXPECT_EQ(interface_text({}, {}, {}), "");
}

TEST(InterfaceText, IsReadBack)
{
    const std::string text = interface_text(k_kinds, k_scalars, ranges_of(k_scalars));
    const auto read = parse_interface(text, k_kinds.size());
    EXPECT_EQ(read.kinds, k_kinds);
    ASSERT_EQ(read.scalars.size(), k_scalars.size());
    for (std::size_t i = 0; i < k_scalars.size(); ++i) {
        EXPECT_EQ(read.scalars[i].name, k_scalars[i].name);
        EXPECT_EQ(read.scalars[i].dtype, k_scalars[i].dtype);
        EXPECT_EQ(read.scalars[i].range, k_scalars[i].range) << k_scalars[i].name;
    }
    EXPECT_EQ(interface_text(read.kinds, read.scalars, ranges_of(read.scalars)), text);
}

TEST(InterfaceText, OfNoDeclarationIsThatOfAnotherOne)
{
    for (const std::string text : {"x", "4000000000 input", "2 inputs", "1 input; scalar", "1 input; scalar n i32",
                                   "1 input; scalar n i32 [0, x]", "1 input;", "1 input, ", "-1 input"}) {
        const auto read = parse_interface(text, 2);
        EXPECT_LE(read.kinds.size(), 2U);
        EXPECT_NE(interface_text(read.kinds, read.scalars, ranges_of(read.scalars)), text);
    }
}

} // namespace
} // namespace warmgraph::test::interface_text_test
