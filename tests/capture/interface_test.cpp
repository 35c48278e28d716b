// Reads the arguments of a call into a frame that all calls use again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warmgraph/call/argument_reader.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::interface_test {
namespace {

class ArgumentsTest : public testing::Test {
protected:
    static MemoryRef at(std::uint64_t flat, std::uint64_t size = 1024) { return {Address::from_flat(flat), size}; }
    static Interface declared()
    {
        Spec spec;
        spec.inputs = {input("x", i32, {256})};
        spec.states = {weights("v", at(0x1000, 64)), weights("w", at(0x2000, 64))};
        spec.scalars = {scalar("n", DType::i32)};
        return *interface_of(spec);
    }
    static std::string refusal(const Result<void>& read) { return read ? "" : read.error().message; }
    Interface interface = declared();
    ArgumentReader reader{interface, 0, Addressing::flat};
    Frame frame;
    const std::vector<Arg> plain{{"x", at(0x8000)}, {"n", std::int32_t{1}}};
};

TEST_F(ArgumentsTest, WhatOneCallGivesIsGoneInTheNext)
{
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    const Frame first = frame;
    const std::vector<Arg> other{
        {"x", Tensor{at(0x9000), i32, {16}, {}}}, {"w", at(0x7000, 64)}, {"n", std::int32_t{2}}};
    ASSERT_EQ(refusal(reader.read(other, frame)), "");
    EXPECT_EQ(frame.memory[2], at(0x7000, 64));
    EXPECT_EQ(frame.tensors[2].offset, at(0x7000).address.offset);
    EXPECT_EQ(frame.tensors[0].sizes[0], 16);
    EXPECT_EQ(frame.scalars[0], 2U);
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    EXPECT_EQ(frame.memory, first.memory);
    EXPECT_EQ(frame.tensors[2].offset, at(0x2000).address.offset);
    EXPECT_EQ(frame.tensors[0].sizes[0], 256);
    EXPECT_EQ(frame.scalars[0], 1U);
}

TEST_F(ArgumentsTest, EveryCallMustBeComplete)
{
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    EXPECT_THAT(refusal(reader.read(std::vector<Arg>{{"n", std::int32_t{1}}}, frame)),
                testing::HasSubstr("'x' is missing"));
    EXPECT_THAT(refusal(reader.read(std::vector<Arg>{{"x", at(0x8000)}}, frame)), testing::HasSubstr("'n' is missing"));
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    EXPECT_THAT(refusal(reader.read(std::vector<Arg>{{"x", at(0x8000, 4)}, {"n", std::int32_t{1}}}, frame)),
                testing::HasSubstr("'x' needs 1024 bytes, its memory has 4"));
    EXPECT_EQ(refusal(reader.read(plain, frame)), "");
    EXPECT_EQ(frame.memory[0], at(0x8000));
}

TEST_F(ArgumentsTest, AStateThatIsBoundElsewhereReachesTheNextCall)
{
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    reader.bind_state(1, at(0x5000, 64));
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    EXPECT_EQ(frame.memory[1], at(0x5000, 64));
    EXPECT_EQ(frame.tensors[1].offset, at(0x5000).address.offset);
    reader.bind_state(1, at(0x5000, 8));
    EXPECT_THAT(refusal(reader.read(plain, frame)), testing::HasSubstr("'v' needs 64 bytes"));
}

TEST_F(ArgumentsTest, ACallSaysWhatMayDifferFromAnother)
{
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    const std::uint64_t number = reader.changed_tensors().number;
    EXPECT_NE(number, 0U);
    EXPECT_THAT(reader.changed_tensors().given, testing::ElementsAre(0));
    ASSERT_EQ(
        refusal(reader.read(std::vector<Arg>{{"x", at(0x8000)}, {"w", at(0x7000, 64)}, {"n", std::int32_t{1}}}, frame)),
        "");
    EXPECT_THAT(reader.changed_tensors().given, testing::ElementsAre(0, 2));
    EXPECT_EQ(reader.changed_tensors().number, number);
    reader.bind_state(1, at(0x5000, 64));
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    EXPECT_NE(reader.changed_tensors().number, number);
    EXPECT_THAT(reader.changed_tensors().given, testing::ElementsAre(0));
}

TEST_F(ArgumentsTest, AStateWithoutMemoryMustBeGiven)
{
    reader.bind_state(1, {});
    EXPECT_THAT(refusal(reader.read(plain, frame)), testing::HasSubstr("'v' is missing"));
    ASSERT_EQ(
        refusal(reader.read(std::vector<Arg>{{"x", at(0x8000)}, {"v", at(0x6000, 64)}, {"n", std::int32_t{1}}}, frame)),
        "");
    reader.bind_state(1, at(0x5000, 64));
    EXPECT_EQ(refusal(reader.read(plain, frame)), "");
}

TEST_F(ArgumentsTest, AnotherFrameIsFilledFromTheStart)
{
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    Frame second;
    const std::vector<Arg> other{{"x", at(0x8000)}, {"v", at(0x6000, 64)}, {"n", std::int32_t{1}}};
    ASSERT_EQ(refusal(reader.read(other, second)), "");
    EXPECT_EQ(second.memory[1], at(0x6000, 64));
    EXPECT_EQ(second.memory[2], at(0x2000, 64));
    ASSERT_EQ(refusal(reader.read(plain, frame)), "");
    EXPECT_EQ(frame.memory[1], at(0x1000, 64));
}

} // namespace
} // namespace warmgraph::test::interface_test
