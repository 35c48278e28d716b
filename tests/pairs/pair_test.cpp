#include "pair_fixture.hpp"

namespace warmgraph::test::pair_test {
namespace {

using testing::HasSubstr;

TEST_F(PairTest, RecordsBothHalvesAsOneEntryAndReplaysThemFromTheNextStepOn)
{
    Cache cache{options()};
    Pair pair = wrap(cache);
    const ForwardCall first = forward(pair);
    EXPECT_EQ(first.outcome, Outcome::recorded) << pair.report(PairHalf::forward).reason;
    EXPECT_TRUE(entries().empty()) << "half a pair is no entry";
    EXPECT_EQ(backward(pair, first), Outcome::recorded) << pair.report(PairHalf::backward).reason;
    expect_results("recorded");
    EXPECT_EQ(entries().size(), 1U);

    x = values(0.2F, -0.1F);
    dy = values(0.1F, 0.5F);
    clear_results();
    forward_runs = backward_runs = 0;
    const ForwardCall second = forward(pair);
    EXPECT_EQ(second.outcome, Outcome::replayed);
    EXPECT_EQ(backward(pair, second), Outcome::replayed);
    expect_results("replayed");
    EXPECT_EQ(forward_runs + backward_runs, 0);

    const Statistics statistics = cache.statistics();
    EXPECT_EQ(statistics.misses, 1U) << "the pair's, not its halves'";
    EXPECT_EQ(statistics.recordings, 1U);
    EXPECT_EQ(statistics.refusals, 0U);
    EXPECT_EQ(statistics.cache_faults, 0U);
}

TEST_F(PairTest, ANewProcessReplaysBothWithOneHit)
{
    step_in_a_new_cache(Outcome::recorded);
    x = values(0.3F, 0);
    forward_runs = backward_runs = 0;
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap(cache);
    clear_results();
    for (int step = 0; step < 3; ++step) {
        const ForwardCall call = forward(pair);
        EXPECT_EQ(call.outcome, Outcome::replayed);
        EXPECT_EQ(backward(pair, call), Outcome::replayed);
        expect_results("warm");
    }
    EXPECT_EQ(forward_runs + backward_runs, 0);
    const Statistics statistics = cache.statistics();
    EXPECT_EQ(statistics.hits, 1U);
    EXPECT_EQ(statistics.misses, 0U);
    EXPECT_NE(cache.readable("step").find("saved.h"), std::string::npos) << cache.readable("step");
    EXPECT_EQ(Cache{options()}.clear("step"), 1U);
    EXPECT_TRUE(entries().empty());
}

/// Each gradient against (f(x + e) - f(x - e)) / 2e of the pair's own forward, replayed.
TEST_F(PairTest, ReplayedGradientsAreThoseOfFiniteDifferences)
{
    step_in_a_new_cache(Outcome::recorded);
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap(cache);
    const ForwardCall call = forward(pair);
    ASSERT_EQ(backward(pair, call), Outcome::replayed);
    const auto dys = read(dy), dxs = read(dx), dws = read(dw);
    constexpr float k_step = 1e-2F;
    const auto shifted = [&](const Buffer& what, float by) {
        const auto before = read(what);
        auto moved = before;
        for (float& value : moved) value += by;
        Buffer& target = &what == &x ? x : w;
        target.write(moved);
        forward(pair);
        auto result = read(y);
        target.write(before);
        return result;
    };
    for (const auto& [what, gradient] : {std::pair{&x, &dxs}, std::pair{&w, &dws}}) {
        const auto above = shifted(*what, k_step), below = shifted(*what, -k_step);
        for (std::size_t i = 0; i < above.size(); ++i)
            ASSERT_NEAR((*gradient)[i], dys[i] * (above[i] - below[i]) / (2 * k_step), 1e-3) << i;
    }
}

TEST_F(PairTest, BackwardOfAnOlderForwardIsStaleAndOfTheLastOneMayBeRepeated)
{
    Cache cache{options()};
    Pair pair = wrap(cache);
    const ForwardCall first = forward(pair), second = forward(pair);
    const auto refused = thrown_by([&] { backward(pair, first); });
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), ErrorCode::stale);
    EXPECT_THAT(refused->what(), HasSubstr("overwrote"));
    EXPECT_EQ(backward_runs, 0);
    EXPECT_EQ(backward(pair, second), Outcome::recorded);
    clear_results();
    const ForwardCall third = forward(pair);
    backward(pair, third);
    dy = values(0.3F, 0);
    EXPECT_EQ(backward(pair, third), Outcome::replayed);
    expect_results("repeated");
    Pair other = cache.wrap_pair(
        "other", device, spec(), [this](Recorder& r) { run_forward(r); }, [this](Recorder& r) { run_backward(r); });
    const auto anothers = thrown_by([&] { backward(other, third); });
    ASSERT_TRUE(anothers);
    EXPECT_EQ(anothers->code(), ErrorCode::stale);
}

TEST_F(PairTest, AForwardThatThrowsSavesNothing)
{
    Cache cache{options(Policy::off)};
    bool throws = false;
    Pair pair = cache.wrap_pair(
        "step", device, spec(),
        [&](Recorder& r) {
            if (throws) throw std::runtime_error("stop");
            run_forward(r);
        },
        [this](Recorder& r) { run_backward(r); });
    const ForwardCall call = forward(pair);
    // Wrong arguments are refused before anything is done.
    EXPECT_TRUE(thrown_by([&] { pair.forward({{"x", x}}); }));
    EXPECT_EQ(backward(pair, call), Outcome::eager);
    throws = true;
    EXPECT_THROW(forward(pair), std::runtime_error);
    const auto refused = thrown_by([&] { backward(pair, call); });
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), ErrorCode::stale);
}

TEST_F(PairTest, AnotherStreamComesAfterTheOtherHalf)
{
    Cache cache{options()};
    Pair pair = wrap(cache);
    Stream one = device.stream(), two = device.stream();
    for (int step = 0; step < 4; ++step) {
        clear_results();
        const ForwardCall call = pair.forward(one, {{"x", x}, {"y", y}});
        pair.backward(call, two, {{"dy", dy}, {"dx", dx}, {"dw", dw}});
        two.synchronize();
        expect_results("in another stream");
    }
}

TEST_F(PairTest, EachHalfFollowsItsStatesAndMemoryElsewhere)
{
    step_in_a_new_cache(Outcome::recorded);
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap(cache);
    w = values(0.4F, -0.2F);
    pair.bind("w", w);
    x = values(0.25F, 0.1F), dy = values(1, 0);
    clear_results();
    backward(pair, forward(pair));
    expect_results("elsewhere");
    const auto refused = thrown_by([&] { pair.bind("h", w); });
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), ErrorCode::invalid_argument);
}

TEST_F(PairTest, EachBackwardBelongsToTheGuardsOfItsForward)
{
    PairSpec declared = spec();
    declared.forward.values = {scalar("mode", i32)};
    std::int32_t mode = 0;
    const auto wrap_with_mode = [&](Cache& cache) {
        return cache.wrap_pair(
            "step", device, declared,
            [&](Recorder& r) {
                mode = r.scalar<std::int32_t>("mode");
                run_forward(r);
            },
            // Specialised on what is a guard of forward alone.
            [&](Recorder& r) {
                run_backward(r);
                if (mode == 1) r.stream().launch(kernels, "add_to", k_launch, r["dy"], r["dx"]);
            });
    };
    const auto step = [&](Pair& pair, std::int32_t which) {
        const ForwardCall call = pair.forward({{"x", x}, {"y", y}, {"mode", which}});
        const Outcome outcome = backward(pair, call);
        return std::pair{outcome, read(dx)[3]};
    };
    float plain = 0, added = 0;
    {
        Cache cache{options()};
        Pair pair = wrap_with_mode(cache);
        plain = step(pair, 0).second, added = step(pair, 1).second;
        EXPECT_NEAR(added, plain + read(dy)[3], 1e-5);
        EXPECT_EQ(step(pair, 0), (std::pair{Outcome::replayed, plain}));
        EXPECT_EQ(step(pair, 1), (std::pair{Outcome::replayed, added}));
        EXPECT_EQ(entries().size(), 2U);
        EXPECT_EQ(cache.statistics().misses, 2U);
    }
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap_with_mode(cache);
    mode = 7;
    EXPECT_EQ(step(pair, 1), (std::pair{Outcome::replayed, added}));
    EXPECT_EQ(step(pair, 0), (std::pair{Outcome::replayed, plain}));
}

/// The forward is a hit, the backward is called otherwise than when it was recorded: a miss of its own, and a second entry.
TEST_F(PairTest, ABackwardWithOtherGuardsIsAMissAndAnEntryOfItsOwn)
{
    PairSpec declared = spec();
    declared.backward.values = {scalar("mode", i32)};
    const auto step = [&](Pair& pair, std::int32_t which) {
        const ForwardCall call = forward(pair);
        return std::pair{call.outcome, pair.backward(call, {{"dy", dy}, {"dx", dx}, {"dw", dw}, {"mode", which}})};
    };
    const auto both = [](Outcome outcome) { return std::pair{outcome, outcome}; };
    {
        Cache cache{options()};
        Pair pair = wrap(cache, declared);
        EXPECT_EQ(step(pair, 0), both(Outcome::recorded));
    }
    {
        Cache cache{options()};
        Pair pair = wrap(cache, declared);
        EXPECT_EQ(step(pair, 0), both(Outcome::replayed));
        EXPECT_EQ(step(pair, 1), (std::pair{Outcome::replayed, Outcome::recorded}));
        EXPECT_EQ(cache.statistics().misses, 1U);
        EXPECT_EQ(cache.statistics().recordings, 1U);
        EXPECT_EQ(entries().size(), 2U);
    }
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap(cache, declared);
    EXPECT_EQ(step(pair, 1), both(Outcome::replayed));
    EXPECT_EQ(step(pair, 0), both(Outcome::replayed));
}

/// Two processes, one program: what one of them damaged is recorded again by the next.
TEST_F(PairTest, ADamagedEntryIsRecordedAnew)
{
    step_in_a_new_cache(Outcome::recorded);
    auto bytes = file_bytes(entries().at(0));
    bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
    write_file(entries().at(0), bytes);
    step_in_a_new_cache(Outcome::recorded);
    step_in_a_new_cache(Outcome::replayed);
    EXPECT_EQ(entries().size(), 1U);
}

TEST_F(PairTest, ALoadedPairIsHeldToBothCallables)
{
    step_in_a_new_cache(Outcome::recorded);
    CacheOptions verifying = options();
    verifying.verify_on_load = true;
    {
        Cache cache{verifying};
        Pair pair = wrap(cache);
        const ForwardCall call = forward(pair);
        EXPECT_EQ(call.outcome, Outcome::replayed);
        EXPECT_EQ(backward(pair, call), Outcome::replayed);
        EXPECT_EQ(cache.statistics().cache_faults, 0U);
    }
    // Another backward under the same guards: found out, removed and recorded anew.
    PairSpec declared = spec();
    declared.forward.version = "1";
    const auto step = [&](CacheOptions with, bool adds) {
        Cache cache{with};
        Pair pair = cache.wrap_pair(
            "other", device, declared, [this](Recorder& r) { run_forward(r); },
            [&](Recorder& r) {
                run_backward(r);
                if (adds) r.stream().launch(kernels, "add_to", k_launch, r["dy"], r["dx"]);
            });
        return backward(pair, forward(pair));
    };
    EXPECT_EQ(step(options(), false), Outcome::recorded);
    EXPECT_EQ(step(verifying, true), Outcome::recorded);
    const auto added = read(dx);
    EXPECT_EQ(step(options(Policy::require_hit), false), Outcome::replayed);
    EXPECT_EQ(read(dx), added) << "the entry is the new one";
}

TEST_F(PairTest, RefreshRecordsBothHalvesAnew)
{
    step_in_a_new_cache(Outcome::recorded);
    Cache cache{options(Policy::refresh)};
    Pair pair = wrap(cache);
    const ForwardCall call = forward(pair);
    EXPECT_EQ(call.outcome, Outcome::recorded);
    EXPECT_EQ(backward(pair, call), Outcome::recorded) << pair.report(PairHalf::backward).reason;
    EXPECT_EQ(forward(pair).outcome, Outcome::replayed);
    EXPECT_EQ(entries().size(), 1U);
}

TEST_F(PairTest, MayOutliveItsCacheAndGivesItsNamesFree)
{
    std::optional<Cache> cache{options()};
    std::optional<Pair> pair{wrap(*cache)};
    const auto taken = thrown_by([&] { static_cast<void>(wrap(*cache)); });
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->code(), ErrorCode::invalid_argument);
    pair.reset();
    pair = wrap(*cache);
    cache.reset();
    backward(*pair, forward(*pair));
    expect_results("without its cache");
    EXPECT_EQ(forward(*pair).outcome, Outcome::replayed);
}

TEST_F(PairTest, IsRecordedByRecordPendingWhereThatIsAskedFor)
{
    CacheOptions later = options();
    later.record = RecordWhen::on_demand;
    Cache cache{later};
    Pair pair = wrap(cache);
    std::size_t recorded = 0;
    for (int step = 0; step < 4; ++step) {
        clear_results();
        backward(pair, forward(pair));
        expect_results("pending");
        recorded += cache.record_pending();
    }
    EXPECT_EQ(recorded, 2U);
    EXPECT_EQ(entries().size(), 1U);
    const ForwardCall call = forward(pair);
    EXPECT_EQ(call.outcome, Outcome::replayed);
    EXPECT_EQ(backward(pair, call), Outcome::replayed);
}

} // namespace
} // namespace warmgraph::test::pair_test
