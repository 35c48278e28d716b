#include <cstdlib>
#include <iostream>
#include <random>

#include <gmock/gmock.h>

#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph::guards::call_guard_test {
namespace {

TensorArg tensor(std::uint64_t base, std::uint64_t offset, DType dtype, const std::vector<std::int64_t>& sizes)
{
    TensorArg arg;
    arg.base = base;
    arg.offset = offset;
    arg.dtype = dtype;
    arg.rank = static_cast<std::uint8_t>(sizes.size());
    std::int64_t stride = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        arg.sizes[i] = sizes[i];
        arg.strides[i] = stride;
        stride *= sizes[i];
    }
    return arg;
}

std::vector<std::string> names_for(std::size_t count)
{
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back("t" + std::to_string(i));
    return names;
}

struct Recorded {
    std::vector<TensorArg> tensors{tensor(1, 0, DType::f32, {4, 8}), tensor(1, 64, DType::f32, {4}),
                                   tensor(2, 256, DType::i32, {}), tensor(3, 128, DType::f16, {1, 2, 3, 4, 5, 6})};
    std::vector<ValueSpec> values{{"a", DType::i64, 12}, {"b", DType::f32, 7}};
    std::vector<std::uint64_t> bits{12, 7};
    CallGuard guard{describe(tensors, names_for(4), "opencl:"), values, 0};
};

TEST(CallGuard, AcceptsTheRecordedCallAgainAndAgain)
{
    Recorded r;
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits));
    EXPECT_TRUE(r.guard.moved());
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits));
    EXPECT_FALSE(r.guard.moved());
}

TEST(CallGuard, AcceptsOtherAddressesOfTheSameAlignmentAndOverlap)
{
    Recorded r;
    ASSERT_TRUE(r.guard.matches(r.tensors, r.bits));
    r.tensors[2].base = 77;
    r.tensors[0].offset += 4096;
    r.tensors[1].offset += 4096;
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits));
    EXPECT_TRUE(r.guard.moved());
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits));
    EXPECT_FALSE(r.guard.moved());
}

TEST(CallGuard, DoesNotLookBeyondTheRank)
{
    Recorded r;
    ASSERT_TRUE(r.guard.matches(r.tensors, r.bits));
    for (TensorArg& arg : r.tensors)
        for (std::size_t i = arg.rank; i < cachefmt::k_max_rank; ++i) arg.sizes[i] = arg.strides[i] = 1 << 20;
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits));
}

TEST(CallGuard, RefusesEveryChangedPropertyAloneAndThenStillAcceptsTheRecordedCall)
{
    Recorded r;
    ASSERT_TRUE(r.guard.matches(r.tensors, r.bits));
    for (std::size_t i = 0; i < r.tensors.size(); ++i) {
        std::vector<std::function<void(TensorArg&)>> changes{
            [](TensorArg& a) { a.dtype = DType::u8; }, [](TensorArg& a) { ++a.rank; }, [](TensorArg& a) { ++a.device; },
            [](TensorArg& a) { a.offset += 1; }};
        for (std::size_t d = 0; d < r.tensors[i].rank; ++d) {
            changes.push_back([d](TensorArg& a) { ++a.sizes[d]; });
            changes.push_back([d](TensorArg& a) { --a.strides[d]; });
            changes.push_back([d](TensorArg& a) { a.sizes[d] ^= std::int64_t{1} << 40; });
        }
        for (const auto& change : changes) {
            auto tensors = r.tensors;
            change(tensors[i]);
            EXPECT_FALSE(r.guard.matches(tensors, r.bits)) << "tensor " << i;
            EXPECT_TRUE(r.guard.matches(r.tensors, r.bits));
            EXPECT_FALSE(r.guard.moved()); // the call that was refused has changed nothing
        }
    }
}

TEST(CallGuard, RefusesChangedOverlap)
{
    Recorded r;
    ASSERT_TRUE(r.guard.matches(r.tensors, r.bits));
    auto apart = r.tensors;
    apart[1].base = 9; // now outside of tensor 0, in which it was before
    EXPECT_FALSE(r.guard.matches(apart, r.bits));
    auto together = r.tensors;
    together[3].base = together[0].base;
    together[3].offset = 0;
    EXPECT_FALSE(r.guard.matches(together, r.bits));
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits));
}

/// The second tensor begins 64 bytes after the start of the first one.
TEST(CallGuard, RefusesAnotherDistanceWhereItIsAGuardAndOnlyThere)
{
    Recorded r;
    auto specs = describe(r.tensors, names_for(4), "opencl:");
    CallGuard anywhere{specs, r.values, 0};
    guard_distances(specs, r.tensors);
    CallGuard exact{specs, r.values, 0};
    auto nearer = r.tensors; // has the same alignment and the same overlaps
    nearer[0].offset += 4096;
    nearer[1].offset += 4096;
    EXPECT_TRUE(exact.matches(nearer, r.bits)) << "both moved";
    nearer[1].offset = nearer[0].offset;
    EXPECT_FALSE(exact.matches(nearer, r.bits));
    EXPECT_TRUE(anywhere.matches(nearer, r.bits));
    EXPECT_TRUE(exact.matches(r.tensors, r.bits));
}

TEST(CallGuard, NeverMatchesADistanceOfATensorFromItself)
{
    const TensorSpec alone{"x", DType::u8, {4}, {1}, "opencl:0", 1, 0, 8};
    EXPECT_FALSE((CallGuard{std::span{&alone, 1}, {}, 0}.matches(std::vector{tensor(1, 0, DType::u8, {4})}, {})));
}

TEST(CallGuard, RefusesOtherCountsAndValues)
{
    Recorded r;
    using Bits = std::vector<std::uint64_t>;
    for (const Bits& bits : {Bits{12}, Bits{12, 7, 0}, Bits{12, 8}, Bits{13, 7}, Bits{7, 12}, Bits{}})
        EXPECT_FALSE(r.guard.matches(r.tensors, bits));
    auto fewer = r.tensors;
    fewer.pop_back();
    EXPECT_FALSE(r.guard.matches(fewer, r.bits));
    auto more = r.tensors;
    more.push_back(more.back());
    EXPECT_FALSE(r.guard.matches(more, r.bits));
    EXPECT_FALSE(r.guard.matches({}, r.bits));
}

TEST(CallGuard, NeverMatchesSpecsThatNoCallCanHave)
{
    TensorSpec nine{"x", DType::u8, std::vector<std::int64_t>(9, 1), std::vector<std::int64_t>(9, 1), "opencl:0", 1, 0};
    TensorSpec uneven{"x", DType::u8, {1}, {}, "opencl:0", 1, 0};
    for (const TensorSpec& spec : {nine, uneven}) {
        CallGuard guard{std::span{&spec, 1}, {}, 0};
        const std::vector<TensorArg> call{tensor(1, 0, DType::u8, std::vector<std::int64_t>(8, 1))};
        EXPECT_FALSE(guard.matches(call, {}));
    }
}

TEST(CallGuard, ExpectsTheRecordedOrdinalElseTheGivenOne)
{
    std::vector<TensorArg> call{tensor(1, 0, DType::u8, {4})};
    call[0].device = 3;
    for (const auto& [device, accepted] :
         {std::pair{"opencl:3", true}, std::pair{"opencl:1", false}, std::pair{"opencl", true}}) {
        const TensorSpec spec{"x", DType::u8, {4}, {1}, device, 1, 0};
        EXPECT_EQ((CallGuard{std::span{&spec, 1}, {}, 3}.matches(call, {})), accepted) << device;
    }
}

// --- Compared with evaluate(describe(...)), a slower way to the same answer

class Randomness {
public:
    explicit Randomness(std::uint64_t seed) : m_engine(seed) {}
    std::uint64_t below(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(m_engine); }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

    TensorArg place(TensorArg arg)
    {
        arg.base = 1 + below(2);
        arg.offset = below(8) * (one_in(3) ? 4 : 64);
        return arg;
    }
    TensorArg some_tensor()
    {
        std::vector<std::int64_t> sizes(below(6));
        for (std::int64_t& size : sizes) size = static_cast<std::int64_t>(below(4)) + (one_in(8) ? 0 : 1);
        TensorArg arg = place(tensor(1, 0, one_in(2) ? DType::f32 : DType::f16, sizes));
        for (std::size_t i = 0; i < arg.rank; ++i)
            if (one_in(8)) arg.strides[i] += 1;
        return arg;
    }
    void mutate(TensorArg& arg)
    {
        switch (below(6)) {
        case 0: arg.dtype = DType::i32; break;
        case 1: arg.device = 1; break;
        case 2:
            if (arg.rank > 0) ++arg.sizes[below(arg.rank)];
            break;
        case 3:
            if (arg.rank > 0) ++arg.strides[below(arg.rank)];
            break;
        default: arg = place(arg);
        }
    }

private:
    std::mt19937_64 m_engine;
};

TEST(CallGuard, TensorsThatAreAsInTheLastAcceptedCallAreNotLookedAt)
{
    Recorded r;
    const std::vector<std::size_t> given{0, 2};
    ASSERT_TRUE(r.guard.matches(r.tensors, r.bits, {5, given}));
    std::vector<TensorArg> others = r.tensors; // tensor 1 differs; this shows that only the given tensors are compared
    ++others[1].sizes[0];
    EXPECT_TRUE(r.guard.matches(others, r.bits, {5, given}));
    EXPECT_FALSE(r.guard.moved());
    for (const std::size_t i : given) {
        std::vector<TensorArg> call = r.tensors;
        call[i].dtype = DType::u8;
        EXPECT_FALSE(r.guard.matches(call, r.bits, {5, given})) << i;
        EXPECT_TRUE(r.guard.matches(r.tensors, r.bits, {5, given})) << i;
    }
    const std::vector<std::uint64_t> other_values{12, 8};
    EXPECT_FALSE(r.guard.matches(r.tensors, other_values, {5, given}));
}

TEST(CallGuard, AnotherNumberOrOtherGivenTensorsAreALookAtAllOfThem)
{
    const std::vector<std::size_t> given{0, 2}, others{0, 1}, fewer{0}, swapped{2, 0};
    for (const ChangedTensors& now :
         std::vector<ChangedTensors>{{6, given}, {5, others}, {5, fewer}, {5, swapped}, {5, {}}, {0, given}, {}}) {
        Recorded r;
        ASSERT_TRUE(r.guard.matches(r.tensors, r.bits, {5, given}));
        std::vector<TensorArg> call = r.tensors;
        ++call[3].sizes[0];
        EXPECT_FALSE(r.guard.matches(call, r.bits, now)) << now.number << ' ' << now.given.size();
        EXPECT_TRUE(r.guard.matches(r.tensors, r.bits, now));
        EXPECT_EQ(r.guard.matches(call, r.bits, now), now.number != 0) << "known from now on";
    }
}

TEST(CallGuard, ACallThatIsAcceptedWithoutANumberEndsWhatWasKnown)
{
    Recorded r;
    const std::vector<std::size_t> given{0};
    ASSERT_TRUE(r.guard.matches(r.tensors, r.bits, {5, given}));
    std::vector<TensorArg> moved = r.tensors;
    moved[3].base = 9;
    ASSERT_TRUE(r.guard.matches(moved, r.bits));
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits, {5, given}));
    EXPECT_TRUE(r.guard.moved()) << "all of them were looked at";
}

TEST(CallGuard, AnOverlapOfAGivenTensorWithAnotherIsFound)
{
    Recorded r;
    const std::vector<std::size_t> given{3};
    ASSERT_TRUE(r.guard.matches(r.tensors, r.bits, {5, given}));
    std::vector<TensorArg> call = r.tensors;
    call[3].base = 2;
    call[3].offset = 256; // overlaps the third tensor, which is not among the given tensors
    EXPECT_FALSE(r.guard.matches(call, r.bits, {5, given}));
    call[3].offset = 4096;
    EXPECT_TRUE(r.guard.matches(call, r.bits, {5, given}));
}

TEST(CallGuard, MoreGivenTensorsThanThereAreAreNotRemembered)
{
    Recorded r;
    const std::vector<std::size_t> given(100, 0);
    EXPECT_TRUE(r.guard.matches(r.tensors, r.bits, {5, given}));
    std::vector<TensorArg> call = r.tensors;
    ++call[3].sizes[0];
    EXPECT_FALSE(r.guard.matches(call, r.bits, {5, given}));
}

std::uint64_t seed()
{
    const char* text = std::getenv("WARMGRAPH_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

TEST(CallGuard, AgreesWithEvaluateOnRandomCalls)
{
    const std::uint64_t start = seed();
    std::cout << "WARMGRAPH_TEST_SEED=" << start << '\n';
    std::size_t accepted = 0, refused = 0;
    for (std::uint64_t round = 0; round < 1500; ++round) {
        Randomness random(start + round);
        std::vector<TensorArg> recorded(1 + random.below(5));
        for (TensorArg& arg : recorded) arg = random.some_tensor();
        const auto names = names_for(recorded.size());
        Guards before{.facts = {},
                      .tensors = describe(recorded, names, "opencl:"),
                      .values = {{"v", DType::u64, random.below(2)}}};
        if (random.one_in(2)) guard_distances(before.tensors, recorded);
        CallGuard guard(before.tensors, before.values, 0);

        auto call = recorded;
        for (int step = 0; step < 8; ++step) {
            if (random.one_in(3)) call = recorded;
            if (random.one_in(2)) random.mutate(call[random.below(call.size())]);
            const std::vector<std::uint64_t> bits{random.one_in(6) ? random.below(2) : before.values[0].bits};
            Guards now{
                .facts = {}, .tensors = describe(call, names, "opencl:"), .values = {{"v", DType::u64, bits[0]}}};
            guard_distances(now.tensors, call);
            const std::vector<Mismatch> mismatches = evaluate(before, now);
            ASSERT_EQ(guard.matches(call, bits), mismatches.empty())
                << "seed " << start + round << " step " << step << ": " << summarize(mismatches);
            ++(mismatches.empty() ? accepted : refused);
        }
    }
    EXPECT_GT(accepted, 1000U);
    EXPECT_GT(refused, 1000U);
}

} // namespace
} // namespace warmgraph::guards::call_guard_test
