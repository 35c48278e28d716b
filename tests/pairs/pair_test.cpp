#include "pair_fixture.hpp"

namespace warmgraph::test::pair_test {
namespace {

TEST_F(PairTest, RecordsBothHalvesTogetherAndReplaysThemFromTheNextStepOn)
{
    Cache cache{options()};
    Pair pair = wrap(cache);
    const ForwardCall first = forward(pair);
    EXPECT_EQ(first.outcome, Outcome::recorded) << pair.report(PairHalf::forward).reason;
    EXPECT_TRUE(entries().empty()) << "it waits for its backward";
    EXPECT_EQ(backward(pair, first), Outcome::recorded) << pair.report(PairHalf::backward).reason;
    expect_results("recorded");
    EXPECT_EQ(entries().size(), 2U);
    const auto recorded = parts(cache);
    ASSERT_EQ(recorded.size(), 2U);
    EXPECT_EQ(recorded[0].part, "backward");
    EXPECT_EQ(recorded[1].part, "forward");
    EXPECT_EQ(recorded[0].recording, recorded[1].recording);

    x = values(0.2F, -0.1F);
    dy = values(0.1F, 0.5F);
    clear_results();
    forward_runs = backward_runs = 0;
    both_halves(pair, Outcome::replayed, "replayed");
    EXPECT_EQ(forward_runs + backward_runs, 0);

    const Statistics statistics = cache.statistics();
    EXPECT_EQ(statistics.of(ArtifactKind::entries).misses, 1U) << "the pair's, not its halves'";
    EXPECT_EQ(statistics.of(ArtifactKind::entries).made, 1U);
    EXPECT_EQ(statistics.of(ArtifactKind::entries).refused, 0U);
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
        both_halves(pair, Outcome::replayed, "warm");
    }
    EXPECT_EQ(forward_runs + backward_runs, 0);
    const Statistics statistics = cache.statistics();
    EXPECT_EQ(statistics.of(ArtifactKind::entries).hits, 1U);
    EXPECT_EQ(statistics.of(ArtifactKind::entries).misses, 0U);
    EXPECT_GT(statistics.of(ArtifactKind::entries).saved_ms, 0);
    EXPECT_EQ(Cache{options()}.clear("step"), 2U);
    EXPECT_TRUE(entries().empty());
}

/// Compares each gradient with (f(x + e) - f(x - e)) / 2e. f is a replay of the pair's own forward.
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
    EXPECT_TRUE(failed_with(thrown_by([&] { backward(pair, first); }), ErrorCode::stale, "overwrote"));
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
    EXPECT_TRUE(failed_with(thrown_by([&] { backward(other, third); }), ErrorCode::stale));
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
    // Wrong arguments must be refused before any work is enqueued.
    EXPECT_TRUE(thrown_by([&] { pair.forward({{"x", x}}); }));
    EXPECT_EQ(backward(pair, call), Outcome::eager);
    throws = true;
    EXPECT_THROW(forward(pair), std::runtime_error);
    EXPECT_TRUE(failed_with(thrown_by([&] { backward(pair, call); }), ErrorCode::stale));
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
    EXPECT_TRUE(failed_with(thrown_by([&] { pair.bind("h", w); }), ErrorCode::invalid_argument));
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
            // Backward depends on a value that only the guards of forward contain.
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
        EXPECT_EQ(entries().size(), 4U);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 2U);
    }
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap_with_mode(cache);
    mode = 7;
    EXPECT_EQ(step(pair, 1), (std::pair{Outcome::replayed, added}));
    EXPECT_EQ(step(pair, 0), (std::pair{Outcome::replayed, plain}));
}

/// Forward hits. But backward has other guards than it had when it was recorded, so it misses and gets a second entry.
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
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 1U);
        EXPECT_EQ(entries().size(), 3U) << "both belong to the one forward";
    }
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap(cache, declared);
    EXPECT_EQ(step(pair, 1), both(Outcome::replayed));
    EXPECT_EQ(step(pair, 0), both(Outcome::replayed));
}

/// A program runs twice. If the first process damages or removes an entry, the second one records it again.
TEST_F(PairTest, OneThatIsDamagedOrMissingIsRecordedAnewAndTheOtherNotUsedWithout)
{
    step_in_a_new_cache(Outcome::recorded);
    for (const std::string part : {"forward", "backward"}) {
        std::filesystem::remove(file_of(part));
        step_in_a_new_cache(Outcome::recorded);
        step_in_a_new_cache(Outcome::replayed);

        auto bytes = file_bytes(file_of(part));
        bytes[bytes.size() / 4] = static_cast<char>(~bytes[bytes.size() / 4]); // changes a byte of the header
        write_file(file_of(part), bytes);
        step_in_a_new_cache(Outcome::recorded);
        step_in_a_new_cache(Outcome::replayed);
    }
}

/// The header is valid, so forward runs before the damage is noticed.
TEST_F(PairTest, ABackwardWhosePayloadIsDamagedIsRecordedAnewForItsForward)
{
    step_in_a_new_cache(Outcome::recorded);
    auto bytes = file_bytes(file_of("backward"));
    bytes.back() = static_cast<char>(~bytes.back());
    write_file(file_of("backward"), bytes);
    {
        Cache cache{options()};
        Pair pair = wrap(cache);
        clear_results();
        const ForwardCall call = forward(pair);
        EXPECT_EQ(call.outcome, Outcome::replayed);
        EXPECT_EQ(backward(pair, call), Outcome::recorded);
        expect_results("with one of them");
    }
    step_in_a_new_cache(Outcome::replayed);
    Cache cache{options()};
    EXPECT_EQ(parts(cache).size(), 2U);
}

TEST_F(PairTest, ABackwardWhoseForwardIsGoneIsNotPublished)
{
    step_in_a_new_cache(Outcome::recorded);
    Cache cache{options()};
    Pair pair = wrap(cache);
    clear_results();
    const ForwardCall call = forward(pair);
    EXPECT_EQ(call.outcome, Outcome::replayed);
    for (const auto& file : entries()) std::filesystem::remove(file);
    EXPECT_EQ(backward(pair, call), Outcome::recorded);
    EXPECT_THAT(pair.report(PairHalf::backward).reason, HasSubstr("not published: the forward that it belongs to"));
    expect_results("with a forward that is gone");
    EXPECT_TRUE(entries().empty());
    backward(pair, forward(pair));
    expect_results("in this process");
}

/// Both processes begin before one of them publishes.
TEST_F(PairTest, TwoThatRecordAtOnceAreNeverMixed)
{
    Cache one{options()}, other{options()};
    Pair of_one = wrap(one), of_other = wrap(other);
    const ForwardCall first = forward(of_one), second = forward(of_other);
    EXPECT_EQ(second.outcome, Outcome::recorded);
    EXPECT_EQ(backward(of_one, first), Outcome::recorded);
    const auto backward_of_one = file_of("backward"), forward_file = file_of("forward");
    const auto forward_of_one = file_bytes(forward_file);
    EXPECT_EQ(backward(of_other, second), Outcome::recorded);
    EXPECT_EQ(entries().size(), 3U) << "one forward, under one set of guards";
    step_in_a_new_cache(Outcome::replayed);

    // Restores the file of the process whose forward was published first, as if it was published last.
    write_file(forward_file, forward_of_one);
    step_in_a_new_cache(Outcome::replayed);
    std::filesystem::remove(backward_of_one);
    step_in_a_new_cache(Outcome::recorded);
    step_in_a_new_cache(Outcome::replayed);
}

/// A second recording of the same work gets the id of the first, so that a difference between them is noticed.
TEST_F(PairTest, ABackwardThatIsNoFunctionOfItsGuardsIsRefusedWithItsForward)
{
    const auto step = [&](Policy policy, bool adds) {
        Cache cache{options(policy)};
        Pair pair = cache.wrap_pair(
            "step", device, spec(), [this](Recorder& r) { run_forward(r); },
            [&](Recorder& r) {
                run_backward(r);
                if (adds) r.stream().launch(kernels, "add_to", k_launch, r["dy"], r["dx"]);
            });
        const ForwardCall call = forward(pair);
        return std::pair{call.outcome, backward(pair, call)};
    };
    EXPECT_EQ(step(Policy::read_write, false), (std::pair{Outcome::recorded, Outcome::recorded}));
    EXPECT_EQ(step(Policy::refresh, true), (std::pair{Outcome::recorded, Outcome::refused}));
    EXPECT_EQ(step(Policy::read_write, true), (std::pair{Outcome::refused, Outcome::eager}));
    EXPECT_EQ(entries().size(), 2U);
}

TEST_F(PairTest, IsRestoredAheadWithItsGraphsWaiting)
{
    step_in_a_new_cache(Outcome::recorded);
    Cache cache{options(Policy::require_hit)};
    Pair pair = wrap(cache);
    Preload preload = cache.preload();
    preload.wait();
    EXPECT_EQ(preload.progress().loaded, 2U);
    clear_results();
    both_halves(pair, Outcome::replayed, "restored ahead");
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U);
}

TEST_F(PairTest, TravelsAsOne)
{
    std::optional<CacheArtifacts> taken;
    {
        Cache cache{options()};
        Pair pair = wrap(cache);
        backward(pair, forward(pair));
    }
    {
        Cache cache{options(Policy::require_hit)};
        Pair pair = wrap(cache);
        forward(pair); // in this process, backward is not called
        taken = cache.save_cache_artifacts();
    }
    ASSERT_TRUE(taken);
    std::filesystem::remove_all(dir.path() / "cache");
    {
        Cache cache{options()};
        cache.load_cache_artifacts(device, taken->bytes);
    }
    step_in_a_new_cache(Outcome::replayed);
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
    // Another backward has the same guards. The difference is noticed, and the entry is removed and recorded again.
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
    EXPECT_EQ(entries().size(), 2U);
}

TEST_F(PairTest, MayOutliveItsCacheAndGivesItsNamesFree)
{
    std::optional<Cache> cache{options()};
    std::optional<Pair> pair{wrap(*cache)};
    EXPECT_TRUE(failed_with(thrown_by([&] { static_cast<void>(wrap(*cache)); }), ErrorCode::invalid_argument));
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
    EXPECT_EQ(entries().size(), 2U);
    const ForwardCall call = forward(pair);
    EXPECT_EQ(call.outcome, Outcome::replayed);
    EXPECT_EQ(backward(pair, call), Outcome::replayed);
}

} // namespace
} // namespace warmgraph::test::pair_test
