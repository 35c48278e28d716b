#include "cache/cache_impl.hpp"
#include "facade_fixture.hpp"
#include "faulty_file_system.hpp"
#include "log_lines.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test::policy_test {
namespace {

using Policies = FacadeTest;

TEST_F(Policies, OffNeitherLooksNorRecords)
{
    Cache cache{options(Policy::off)};
    Function f = add_one(cache);
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::eager);
    EXPECT_EQ(read(m_y), read(floats(1)));
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "cache"));
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 0U);
}

TEST_F(Policies, OffServesEveryShapeWithScratchOfItsSize)
{
    Cache cache{options(Policy::off)};
    Function f = cache.wrap("f", device, vector_spec(), [this](Recorder& r) {
        const auto n = static_cast<std::uint32_t>(r.sizes("x")[0]);
        const Launch launch{.grid = {n / 16}, .block = {16}};
        const Address scratch = r.alloc("scratch", n * 4);
        r.stream().launch(program, "add_one", launch, r["x"], scratch);
        r.stream().launch(program, "add_one", launch, scratch, r["y"]);
    });
    for (const std::int64_t n : {16, 64, 32, 64}) {
        EXPECT_EQ(f({{"x", Tensor{m_x, f32, {n}, {}}}, {"y", Tensor{m_y, f32, {n}, {}}}}), Outcome::eager);
        EXPECT_EQ(read(m_y)[static_cast<std::size_t>(n) - 1], static_cast<float>(n) + 1);
    }
}

TEST_F(Policies, ReadOnlyReplaysHitsAndRunsMissesAsTheyAre)
{
    {
        Cache cache{options()};
        Function f = add_one(cache);
        f({{"x", m_x}, {"y", m_y}});
    }
    Cache cache{options(Policy::read_only)};
    Function known = add_one(cache), unknown = add_one(cache, "unknown");
    EXPECT_EQ(known({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
    EXPECT_EQ(unknown({{"x", m_x}, {"y", m_y}}), Outcome::eager);
    EXPECT_EQ(unknown({{"x", m_x}, {"y", m_y}}), Outcome::eager);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U)
        << "the second call of a known miss costs no look-up";
    EXPECT_EQ(entries().size(), 1U);
}

/// The folder is in a container image that contains a warm cache, or on a full disk.
TEST_F(Policies, AFolderThatCannotBeWrittenIsReadAllTheSame)
{
    {
        Cache cache{options()};
        Function f = add_one(cache);
        EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
    }
    std::size_t replayed = 0;
    for (std::uint64_t nth = 1; nth <= 10; ++nth) {
        FaultyFileSystem disk;
        disk.fail_at(nth, ErrorCode::no_space);
        Cache cache = CacheAccess::open(options(), disk);
        Function known = add_one(cache), unknown = add_one(cache, fmt::format("unknown{}", nth));
        if (!cache.disabled_reason().empty()) continue;                    // the fault made the folder unusable
        if (unknown({{"x", m_x}, {"y", m_y}}) != Outcome::eager) continue; // the fault came before the use was counted
        ++replayed;
        EXPECT_EQ(known({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
        EXPECT_EQ(read(m_y), read(floats(1)));
        disk.fail_at(nth, ErrorCode::no_space);
        Cache refreshing = CacheAccess::open(options(Policy::refresh), disk);
        Function fresh = add_one(refreshing);
        EXPECT_EQ(fresh({{"x", m_x}, {"y", m_y}}), Outcome::eager) << "what is stored is what it must not run";
    }
    EXPECT_GE(replayed, 1U);
}

TEST_F(Policies, RequireHitThrowsWhereAnythingWouldBeRecorded)
{
    {
        Cache cache{options()};
        Function f = add_one(cache);
        f({{"x", m_x}, {"y", m_y}});
    }
    Cache cache{options(Policy::require_hit)};
    Function known = add_one(cache), unknown = add_one(cache, "unknown");
    EXPECT_EQ(known({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
    EXPECT_TRUE(failed_with(thrown_by([&] { unknown({{"x", m_x}, {"y", m_y}}); }), ErrorCode::miss_forbidden,
                            "record it first with policy read_write"));
    EXPECT_TRUE(entries().size() == 1);
}

TEST_F(Policies, RequireHitThrowsWhenTheFolderIsMissing)
{
    Cache cache{options(Policy::require_hit)};
    Function f = add_one(cache);
    EXPECT_TRUE(failed_with(thrown_by([&] { f({{"x", m_x}, {"y", m_y}}); }), ErrorCode::miss_forbidden));
}

TEST_F(Policies, RefreshRecordsTheSameFunctionAgainAndReplacesIt)
{
    for (int round = 0; round < 2; ++round) {
        Cache cache{options(Policy::refresh)};
        Function f = add_one(cache);
        EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded) << f.report().reason;
        EXPECT_EQ(read(m_y), read(floats(1)));
    }
    EXPECT_EQ(entries().size(), 1U);
    Cache cache{options()};
    Function f = add_one(cache);
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
}

TEST_F(Policies, ADifferentSecondRecordingIsTombstonedAsRecompiledAndRefused)
{
    float factor = 2.0F; // no guard sees this factor, so recordings differ under the same guards
    const auto wrap = [&](Cache& cache) {
        return cache.wrap("scale", device, vector_spec(),
                          [&](Recorder& r) { r.stream().launch(program, "scale", k_launch, r["x"], r["y"], factor); });
    };
    {
        Cache cache{options()};
        Function f = wrap(cache);
        EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
    }
    factor = 3.0F;
    {
        Cache cache{options(Policy::refresh)};
        Function f = wrap(cache);
        const LogLines log_lines;
        EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::refused);
        EXPECT_EQ(read(m_y)[1], 3.0F) << "the caller gets the function's own result";
        EXPECT_THAT(f.report().reason, AllOf(HasSubstr("recompiled"), HasSubstr("node 0")));
        EXPECT_EQ(log_lines.with("recompiled").size(), 1U) << "said once";
        EXPECT_THAT(log_lines.with("recompiled").front(), HasSubstr("node 0")) << "with what differs";
    }
    Cache cache{options()};
    Function f = wrap(cache);
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::refused);
    EXPECT_EQ(read(m_y)[1], 3.0F);
    EXPECT_THAT(f.report().reason, HasSubstr("node 0"));
    EXPECT_THAT(f.report().reason, HasSubstr("`warmgraph clear --func " + options().model + "/scale`"));
    EXPECT_THAT(f.report().reason, HasSubstr("scale"));
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).refused, 1U);
    const auto store = *store::LocalStore::open(dir.path() / "cache");
    EXPECT_EQ(store->usage(store->functions()->front()).refusals, 2U) << "of both caches, as `warmgraph stats` tells";
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::refused);
    EXPECT_EQ(cache.clear("scale"), 1U);
    Cache cleared{options()};
    Function g = wrap(cleared);
    EXPECT_EQ(g({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
}

TEST_F(Policies, TheEnvironmentSetsThePolicyUnlessTheOptionsDo)
{
    ::setenv("WARMGRAPH_POLICY", "off", 1);
    CacheOptions from_environment = options();
    from_environment.policy.reset();
    Cache off{from_environment};
    EXPECT_EQ(off.disabled_reason(), "policy off");
    Cache on{options()};
    EXPECT_EQ(on.disabled_reason(), "");
    ::setenv("WARMGRAPH_POLICY", "sometimes", 1);
    const auto thrown = thrown_by([&] { Cache{from_environment}; });
    ::unsetenv("WARMGRAPH_POLICY");
    EXPECT_THAT(message_of(thrown), HasSubstr("expected read_write"));
}

TEST_F(Policies, AFunctionsOwnPolicyWins)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    spec.policy = Policy::off;
    Function f = cache.wrap("add_one", device, spec,
                            [this](Recorder& r) { r.stream().launch(program, "add_one", k_launch, r["x"], r["y"]); });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::eager);
    EXPECT_TRUE(entries().empty());
}

} // namespace
} // namespace warmgraph::test::policy_test
