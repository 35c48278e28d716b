// Classifies hand-made captures that no device backend can produce.
#include "classify/classify.hpp"
#include "expect_error.hpp"
#include "number_decl.hpp"

namespace warmgraph::classify_test {
namespace {

using backends::ParamKind;
using backends::RawFill;
using backends::RawKernel;
using backends::RawParam;

constexpr std::uint64_t k_size = 256;

template <class T>
RawParam value(T number)
{
    Bytes bytes;
    append(bytes, number);
    return {ParamKind::value, bytes, {}, 0};
}
RawParam memory(Address address) { return {ParamKind::memory, {}, address, 0}; }

class Classify : public testing::Test {
protected:
    Classify()
    {
        interface.regions.push_back({"x", cachefmt::RegionKind::input, DType::f32, {64}, {}});
        interface.regions.push_back({"y", cachefmt::RegionKind::output, DType::f32, {64}, {}});
        interface.scalars.push_back(test::number("n", DType::i32, std::pair{0.0, 100.0}));
        captures.scalars = {5};
    }
    /// Captures one kernel. `make` returns the kernel's parameters for given addresses and a given scalar value.
    template <class Make>
    void capture_all(Make make)
    {
        const auto capture = [&](std::uint64_t place, std::int32_t n) {
            CapturedGraph result;
            result.regions = {{{place + 1, 0}, k_size}, {{place + 2, 0}, k_size}};
            result.graph.nodes.push_back(
                {RawKernel{nullptr, "k", {1, 1, 1}, {1, 1, 1}, make(Address{place + 1, 0}, Address{place + 2, 0}, n)},
                 {}});
            return result;
        };
        captures.first = capture(0, 5);
        captures.again = capture(0, 5);
        captures.moved = capture(100, 5);
        captures.probes = {{0, 0, capture(0, 0)}, {0, 100, capture(0, 100)}};
    }
    [[nodiscard]] Result<cachefmt::Graph> graph() const
    {
        auto classified = classify(interface, captures);
        if (!classified) return std::unexpected(classified.error());
        return std::move(classified->graph);
    }
    [[nodiscard]] const cachefmt::Param& param(const cachefmt::Graph& from, std::size_t index) const
    {
        return std::get<cachefmt::KernelNode>(from.nodes[0]).params[index];
    }
    Interface interface;
    Captures captures;
};

TEST_F(Classify, AnAddressBecomesItsRegionAndOffset)
{
    capture_all([](Address x, Address y, std::int32_t) { return std::vector{memory(x + 128), memory(y)}; });
    const auto result = take(graph());
    EXPECT_EQ(param(result, 0).slots.at(0).target, 0U);
    EXPECT_EQ(param(result, 0).slots.at(0).addend, 128);
    EXPECT_EQ(param(result, 1).slots.at(0).target, 1U);
}

TEST_F(Classify, OnePastTheEndBelongsToItsRegionAndBeyondIsRefused)
{
    capture_all([](Address x, Address, std::int32_t) { return std::vector{memory(x + k_size)}; });
    EXPECT_TRUE(graph());
    capture_all([](Address x, Address, std::int32_t) { return std::vector{memory(x + (k_size + 1))}; });
    EXPECT_THAT(message_of(graph()), testing::HasSubstr("kernel k (node 0) takes an address at parameter 0"));
}

TEST_F(Classify, OnePastTheEndIsNoPlaceToFill)
{
    const auto fill_the_end = [this](std::uint64_t size) {
        capture_all([](Address, Address, std::int32_t) { return std::vector<RawParam>{}; });
        for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved})
            capture->graph.nodes.push_back({RawFill{capture->regions[0].address + k_size, {std::byte{1}}, size}, {}});
        captures.probes.clear();
    };
    fill_the_end(0);
    EXPECT_TRUE(graph());
    fill_the_end(16);
    EXPECT_THAT(message_of(graph()), testing::HasSubstr("fill (node 1) takes an address at its destination"));
}

TEST_F(Classify, AnAddressThatStaysWhileItsRegionMovesIsRefused)
{
    capture_all([](Address, Address y, std::int32_t) { return std::vector{memory({1, 0}), memory(y)}; });
    EXPECT_FALSE(graph());
}

TEST_F(Classify, AnOffsetThatDependsOnThePlaceIsRefused)
{
    capture_all([](Address x, Address, std::int32_t) { return std::vector{memory(x + (x.base > 50 ? 128 : 0))}; });
    EXPECT_THAT(message_of(graph()), testing::HasSubstr("does not follow its region"));
}

TEST_F(Classify, AScalarInsideAByValueStructGetsASlotAtItsOffset)
{
    struct Args {
        std::int32_t width, position;
        float eps;
    };
    capture_all([](Address, Address, std::int32_t n) { return std::vector{value(Args{64, n + 1, 0.5F})}; });
    const auto result = take(graph());
    const auto& slots = param(result, 0).slots;
    ASSERT_EQ(slots.size(), 1U);
    EXPECT_EQ(slots[0].offset, 4U);
    EXPECT_EQ(slots[0].width, 4);
    EXPECT_EQ(slots[0].addend, 1);
}

TEST_F(Classify, AnIntegerThatEqualsTheScalarByChanceStaysAConstant)
{
    capture_all([](Address, Address, std::int32_t) { return std::vector{value(std::int32_t{5})}; });
    const auto result = take(graph());
    EXPECT_TRUE(param(result, 0).slots.empty());
}

TEST_F(Classify, AScalarThatIsSignExtendedWithinItsRangeIsRefused)
{
    // The parameter is n - 50 with 64 bits. Its upper half changes between the ends of n's range, and a slot of 4 bytes
    // would miss that.
    capture_all([](Address, Address, std::int32_t n) { return std::vector{value(std::int64_t{n} - 50)}; });
    EXPECT_FALSE(graph());
    // The parameter is n with 64 bits. Its upper half is 0 over the whole range.
    capture_all([](Address, Address, std::int32_t n) { return std::vector{value(std::int64_t{n})}; });
    EXPECT_TRUE(graph());
}

TEST_F(Classify, AScalarCutToFewerBytesIsRefused)
{
    capture_all([](Address, Address, std::int32_t n) { return std::vector{value(static_cast<std::int16_t>(n))}; });
    EXPECT_FALSE(graph());
}

TEST_F(Classify, OneCaptureIsNoProofAndIsTakenOnlyWhenThatIsAllowed)
{
    capture_all([](Address x, Address, std::int32_t) { return std::vector{memory(x + 128)}; });
    captures.again.reset();
    captures.moved.reset();
    EXPECT_THAT(message_of(graph()), testing::HasSubstr("one capture does not prove"));
    captures.proof = Proof::allow_unproven;
    const auto taken = take(classify(interface, captures));
    EXPECT_EQ(taken.unproven, 1U);
    EXPECT_EQ(param(taken.graph, 0).slots.at(0).addend, 128);
}

TEST_F(Classify, AFillPatternThatFollowsAScalarIsRefused)
{
    capture_all([](Address, Address, std::int32_t) { return std::vector<RawParam>{}; });
    const auto with_fill = [](CapturedGraph& capture, std::byte pattern) {
        capture.graph.nodes.push_back({RawFill{capture.regions[0].address, {pattern}, 16}, {}});
    };
    for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved, &captures.probes[0].capture})
        with_fill(*capture, std::byte{1});
    with_fill(captures.probes[1].capture, std::byte{2});
    const auto refused = graph();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                testing::AllOf(testing::HasSubstr("scalar 'n'"), testing::HasSubstr("fill (node 1)")));
}

} // namespace
} // namespace warmgraph::classify_test
