// Tests which errors a pair raises: their codes, and the names in their messages.
#include "pair_fixture.hpp"
#include "warmgraph/facade/cache_access.hpp"

namespace warmgraph::test::pair_bad_input_test {
namespace {

class PairBadInput : public PairTest {
protected:
    void expect_refused(const PairSpec& declared, ErrorCode code, const testing::Matcher<std::string>& why)
    {
        Cache cache{options()};
        const auto refused = thrown_by([&] { static_cast<void>(wrap(cache, declared)); });
        ASSERT_TRUE(failed_with(refused, code));
        EXPECT_THAT(refused->what(), why);
        Pair free = wrap(cache); // after the refusal, the name can be used
        EXPECT_EQ(forward(free).outcome, Outcome::recorded);
    }
    void expect_refused_call(const std::function<void(Pair&)>& call, const testing::Matcher<std::string>& why)
    {
        Cache cache{options()};
        Pair pair = wrap(cache);
        const auto refused = thrown_by([&] { call(pair); });
        ASSERT_TRUE(failed_with(refused, ErrorCode::invalid_argument));
        EXPECT_THAT(refused->what(), why);
        clear_results();
        backward(pair, forward(pair)); // after the refusal, the pair still works
        expect_results("after a refused call");
    }
};

TEST_F(PairBadInput, HalvesThatDeclareOtherShapes)
{
    PairSpec declared = spec();
    declared.backward.outputs[0].sizes = {k_count + 1};
    expect_refused(declared, ErrorCode::invalid_argument,
                   AllOf(HasSubstr("the shapes of forward and backward of 'step' do not match"),
                         HasSubstr("'dx' as f32 [65]"), HasSubstr("'x' as f32 [64]")));
    declared = spec();
    declared.backward.inputs.push_back(input("x", i32, {k_count}));
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("'x' as i32 [64]"));
    declared = spec();
    declared.gradients["dz"] = "x";
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("'dz', which backward does not declare"));
    declared = spec();
    declared.gradients["dx"] = "z";
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("'z', which forward does not declare"));
}

TEST_F(PairBadInput, SavedMemoryThatIsDeclaredTwiceOrHasNoBytes)
{
    PairSpec declared = spec();
    declared.saved.push_back({"h", f32, {2}});
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("'h' is declared twice"));
    declared = spec();
    declared.saved.push_back({"dy", f32, {2}});
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("'dy' is declared twice"));
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{0}, std::vector<std::int64_t>{-1},
                                                   std::vector<std::int64_t>{1LL << 62, 1LL << 62}}) {
        declared = spec();
        declared.saved.push_back({"more", f32, sizes});
        expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("'more'"));
    }
    declared = spec();
    declared.saved.push_back({"more", f32, {1LL << 50}});
    expect_refused(declared, ErrorCode::out_of_memory, HasSubstr("'more'"));
}

TEST_F(PairBadInput, GuardsThatTheHalvesSayOtherwise)
{
    PairSpec declared = spec();
    declared.forward.version = "1", declared.backward.version = "2";
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("version '1' in forward and '2' in backward"));
    declared = spec();
    declared.forward.config["dtype"] = "f32", declared.backward.config["dtype"] = "f16";
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("configuration 'dtype'"));
    declared = spec();
    declared.forward.policy = Policy::off, declared.backward.policy = Policy::refresh;
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("another policy in forward than in backward"));
    declared = spec();
    declared.backward.recorded_code["code.version"] = "1";
    expect_refused(declared, ErrorCode::invalid_argument, HasSubstr("recorded_code"));
    declared = spec();
    declared.backward.events["done"] = nullptr;
    expect_refused(declared, ErrorCode::unsupported, HasSubstr("backward of 'step' declares events"));
    declared = spec();
    declared.forward.buckets.emplace_back();
    expect_refused(declared, ErrorCode::unsupported, HasSubstr("forward of 'step' declares buckets"));
}

TEST_F(PairBadInput, NamesThatAreTakenOrNone)
{
    Cache cache{options()};
    Function taken = add_one(cache, "step.backward");
    EXPECT_THAT(message_of(thrown_by([&] { static_cast<void>(wrap(cache)); })),
                HasSubstr("'step.backward' is wrapped already"));
    Function free = add_one(cache, "step");
    const auto path = thrown_by(
        [&] { static_cast<void>(cache.wrap_pair("a/b", device, spec(), [](Recorder&) {}, [](Recorder&) {})); });
    EXPECT_TRUE(failed_with(path, ErrorCode::invalid_argument));
    const auto empty = thrown_by([&] {
        static_cast<void>(
            CacheAccess::wrap_pair(cache, "c", device, spec(), Callable{}, [](Recorder&) {}, nullptr, nullptr));
    });
    EXPECT_THAT(message_of(empty), HasSubstr("'c' wraps an empty forward"));
}

TEST_F(PairBadInput, BackwardBeforeForward)
{
    expect_refused_call([this](Pair& pair) { backward(pair, {}); }, HasSubstr("is called before forward"));
}

TEST_F(PairBadInput, SavedMemoryAsAnArgumentOrUnderOne)
{
    expect_refused_call([this](Pair& pair) { pair.forward({{"x", x}, {"y", y}, {"h", y}}); },
                        HasSubstr("'h' is saved memory of 'step'"));
    MemoryRef arena;
    Cache cache{options(Policy::off)};
    Pair pair = cache.wrap_pair(
        "step", device, spec(),
        [&](Recorder& r) {
            arena = {r["h"], 2 * k_count * 4};
            run_forward(r);
        },
        [this](Recorder& r) { run_backward(r); });
    const ForwardCall call = forward(pair);
    // If a gradient was in the memory for saved values, the next forward would overwrite it.
    const auto refused = thrown_by([&] { pair.backward(call, {{"dy", dy}, {"dx", arena}, {"dw", dw}}); });
    ASSERT_TRUE(failed_with(refused, ErrorCode::invalid_argument, "'dx' overlaps 'h'"));
    EXPECT_TRUE(thrown_by([&] { pair.forward({{"x", arena}, {"y", y}}); }));
    EXPECT_EQ(backward(pair, call), Outcome::eager) << "a refused call saved nothing";
}

TEST_F(PairBadInput, ACallWithOtherShapesThanItsForward)
{
    expect_refused_call(
        [this](Pair& pair) {
            const ForwardCall call = forward(pair);
            pair.backward(call, {{"dy", Tensor{dy, f32, {k_count / 2}, {}}}, {"dx", dx}, {"dw", dw}});
        },
        AllOf(HasSubstr("the shapes in the calls of forward and backward"), HasSubstr("'dy' as f32 [32]"),
              HasSubstr("'y' as f32 [64]")));
}

TEST_F(PairBadInput, ACallInsideACallable)
{
    Cache cache{options(Policy::off)};
    Pair inner = wrap(cache);
    Pair outer = cache.wrap_pair("outer", device, spec(), [&](Recorder&) { forward(inner); }, [](Recorder&) {});
    EXPECT_TRUE(failed_with(thrown_by([&] { forward(outer); }), ErrorCode::invalid_argument,
                            "is called inside 'outer.forward'"));
}

// --- The backward half reads memory that the forward half did not save

TEST_F(PairBadInput, BackwardAsksForWhatItDidNotDeclare)
{
    Cache cache{options()};
    Pair pair = cache.wrap_pair(
        "step", device, spec(), [this](Recorder& r) { run_forward(r); },
        [](Recorder& r) { static_cast<void>(r["x"]); });
    const ForwardCall call = forward(pair);
    const auto refused = thrown_by([&] { backward(pair, call); });
    ASSERT_TRUE(failed_with(refused, ErrorCode::invalid_argument));
    EXPECT_THAT(refused->what(), AllOf(HasSubstr("'step.backward' asks for 'x'"), HasSubstr("declared are dy, h")));
}

/// In this call, the memory of forward's input still exists. In a replay, other memory would be there.
TEST_F(PairBadInput, BackwardThatReadsForwardsInputIsRefusedByName)
{
    Cache cache{options()};
    Pair pair = cache.wrap_pair(
        "step", device, spec(), [this](Recorder& r) { run_forward(r); },
        [this](Recorder& r) {
            run_backward(r);
            r.stream().launch(kernels, "add_to", k_launch, x, r["dx"]);
        });
    for (int step = 0; step < 3; ++step) {
        clear_results();
        const ForwardCall call = forward(pair);
        EXPECT_NE(call.outcome, Outcome::replayed);
        EXPECT_EQ(backward(pair, call), step < 2 ? Outcome::refused : Outcome::eager);
        if (step >= 2) continue;
        EXPECT_THAT(pair.report(PairHalf::backward).reason,
                    AllOf(HasSubstr("undeclared memory"), HasSubstr("'x' of 'step.forward'")));
    }
    EXPECT_TRUE(entries().empty());
}

/// In a replay, forward's scratch has another address. So forward is not replayed, and the results stay right.
TEST_F(PairBadInput, BackwardThatReadsForwardsScratchIsRefusedByNameAndForwardRunsAsItIs)
{
    Cache cache{options()};
    Address kept;
    Pair pair = cache.wrap_pair(
        "step", device, spec(),
        [&](Recorder& r) {
            run_forward(r);
            const Address scratch = r.alloc("hidden", k_count * 4);
            r.stream().launch(kernels, "copy_to", k_launch, r["x"], scratch);
            if (kept.is_null()) kept = scratch; // keeps the scratch that the answer used
        },
        [&](Recorder& r) {
            run_backward(r);
            r.stream().launch(kernels, "add_to", k_launch, kept, r["dx"]);
        });
    for (int step = 0; step < 4; ++step) {
        x = values(0.1F * static_cast<float>(step), 0.2F);
        const ForwardCall call = forward(pair);
        EXPECT_NE(call.outcome, Outcome::replayed) << step;
        EXPECT_NE(backward(pair, call), Outcome::replayed);
        if (step < 2) {
            EXPECT_THAT(pair.report(PairHalf::backward).reason,
                        AllOf(HasSubstr("undeclared memory"), HasSubstr("scratch 'hidden' of 'step.forward'")));
        }
        const auto xs = read(x), ws = read(w), dys = read(dy), dxs = read(dx);
        for (std::size_t i = 0; i < xs.size(); ++i) {
            const float t = std::tanh(xs[i] * ws[i]);
            ASSERT_NEAR(dxs[i], dys[i] * (1 - t * t) * ws[i] + xs[i], 1e-5) << "step " << step;
        }
    }
    EXPECT_TRUE(entries().empty());
    EXPECT_THAT(pair.report(PairHalf::forward).reason, HasSubstr("its backward cannot be recorded"));
}

TEST_F(PairBadInput, AForwardThatCannotBeRecordedRunsAsItIsAndSoDoesItsBackward)
{
    Cache cache{options()};
    Pair pair = cache.wrap_pair(
        "step", device, spec(),
        [this](Recorder& r) {
            run_forward(r);
            r.stream().launch(kernels, "copy_to", k_launch, r["x"], dw); // reads memory that is not declared
        },
        [this](Recorder& r) { run_backward(r); });
    for (int step = 0; step < 3; ++step) {
        clear_results();
        const ForwardCall call = forward(pair);
        EXPECT_EQ(call.outcome, Outcome::refused);
        EXPECT_EQ(backward(pair, call), Outcome::eager);
        expect_results("as it is");
    }
    EXPECT_TRUE(entries().empty());
}

} // namespace
} // namespace warmgraph::test::pair_bad_input_test
