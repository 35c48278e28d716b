// Tests the savings that are reported for programs, entries and tuned configurations: if a saving is a part of another
// one, it counts only once.
#include "cache/cache_impl.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/precompile/compiled_program.hpp"

namespace warmgraph::test::savings_test {
namespace {

class SavingsTest : public FacadeTest {
protected:
    /// A new process, which has not compiled anything yet.
    struct Start {
        explicit Start(const SavingsTest& test, const CacheOptions& how)
            : cache(how), program(test.device.program("small", k_small_kernels, ""))
        {
        }
        Cache cache;
        Program program;
    };
    [[nodiscard]] Function wrap(Start& start, const std::string& name) const
    {
        Spec spec = x_to_y(f32, k_count, {start.program});
        return start.cache.wrap(name, device, spec, [&start](Recorder& r) {
            r.stream().launch(start.program, "add_one", {.grid = {k_count / 16, 1, 1}, .block = {16, 1, 1}}, r["x"],
                              r["y"]);
        });
    }
    Outcome call(Start& start, const std::string& name) const
    {
        const Buffer x = floats(0, k_count), y = device.allocate(k_count * 4);
        return wrap(start, name)({{"x", x}, {"y", y}});
    }
    /// Records in a start without a cache. Returns the milliseconds of the first call.
    double record(const std::string& name)
    {
        Start start{*this, options()};
        EXPECT_EQ(call(start, name), Outcome::recorded);
        m_compile_ms = start.cache.statistics().of(ArtifactKind::compiled).making_ms;
        Start warm{*this, options()};
        EXPECT_EQ(call(warm, name), Outcome::replayed);
        EXPECT_EQ(warm.cache.statistics().of(ArtifactKind::compiled).hits, 0U);
        return warm.cache.statistics().of(ArtifactKind::entries).saved_ms +
               warm.cache.statistics().of(ArtifactKind::entries).load_ms;
    }
    double m_compile_ms = 0;
};

TEST_F(SavingsTest, AProgramThatAReplayedEntryContainsIsCountedOnce)
{
    const double first_call = record("replayed");
    ASSERT_GT(m_compile_ms, first_call / 4) << "else this test tells nothing";
    for (const bool replays_first : {true, false}) {
        Start start{*this, options()};
        if (replays_first) {
            EXPECT_EQ(call(start, "replayed"), Outcome::replayed);
        }
        EXPECT_EQ(call(start, replays_first ? "new" : "newer"), Outcome::recorded);
        if (!replays_first) {
            EXPECT_EQ(call(start, "replayed"), Outcome::replayed);
        }
        const Statistics now = start.cache.statistics();
        ASSERT_EQ(now.of(ArtifactKind::compiled).hits, 1U);
        EXPECT_LE(now.of(ArtifactKind::entries).saved_ms + now.of(ArtifactKind::compiled).saved_ms, first_call);
        EXPECT_GT(now.of(ArtifactKind::entries).saved_ms + now.of(ArtifactKind::compiled).saved_ms,
                  first_call - m_compile_ms / 2);
    }
}

TEST_F(SavingsTest, WhatIsCompiledAllTheSameIsTakenOff)
{
    const double first_call = record("replayed");
    ASSERT_EQ(Cache{options()}.clear({}, "compiled"), 1U);
    Start start{*this, options()};
    EXPECT_EQ(call(start, "replayed"), Outcome::replayed);
    EXPECT_EQ(call(start, "new"), Outcome::recorded);
    const Statistics now = start.cache.statistics();
    ASSERT_EQ(now.of(ArtifactKind::compiled).made, 1U);
    EXPECT_LT(now.of(ArtifactKind::compiled).saved_ms, 0)
        << "the replayed call's saving contains it, and it was compiled";
    EXPECT_LT(now.of(ArtifactKind::entries).saved_ms + now.of(ArtifactKind::compiled).saved_ms,
              first_call - now.of(ArtifactKind::compiled).making_ms / 2);
}

TEST_F(SavingsTest, WhatPoclCompilesAtTheLaunchIsTheProgramsOwn)
{
    record("one");
    {
        const auto folder = store::LocalStore::open(dir.path() / "cache").value();
        const auto names = folder->tier().list({.kind = store::ArtifactKind::compiled}).value();
        ASSERT_EQ(names.size(), 1U);
        const auto object = folder->object(names[0]).value();
        const double stored_ms = precompile::decode_facts(object.value()).value().compile_ms;
        EXPECT_DOUBLE_EQ(stored_ms, m_compile_ms) << "which contains the launch's part";
    }
    Start start{*this, options()};
    EXPECT_EQ(call(start, "two"), Outcome::recorded);
    const Statistics now = start.cache.statistics();
    ASSERT_EQ(now.of(ArtifactKind::compiled).hits, 1U);
    EXPECT_GT(now.of(ArtifactKind::compiled).saved_ms, m_compile_ms * 0.8);
    EXPECT_EQ(now.of(ArtifactKind::entries).saved_ms, 0);
}

TEST_F(SavingsTest, AnEntryNamesThePrograms)
{
    record("one");
    const auto folder = store::LocalStore::open(dir.path() / "cache").value();
    const auto functions = folder->functions().value();
    ASSERT_EQ(functions.size(), 1U);
    const auto variants = folder->variants(functions[0]).value();
    ASSERT_EQ(variants.size(), 1U);
    const auto& info = variants[0].header->info;
    ASSERT_EQ(info.compiled.size(), 1U);
    EXPECT_NEAR(info.compiled[0].ms, m_compile_ms, m_compile_ms / 100);
    EXPECT_LT(info.compiled[0].ms, info.answer_ms);
    EXPECT_FALSE(info.compiled[0].at_launch);
    const auto names = folder->tier().list({.kind = store::ArtifactKind::compiled}).value();
    ASSERT_EQ(names.size(), 1U);
    EXPECT_EQ(std::get<store::ArtifactName>(names[0]).digest, info.compiled[0].program);
}

TEST_F(SavingsTest, KindsAreClearedAndBudgetedByTheProgram)
{
    record("one");
    CacheOptions how = options();
    how.max_bytes_by_kind = {{ArtifactKind::compiled, 1}};
    {
        Start start{*this, how};
        EXPECT_EQ(call(start, "two"), Outcome::recorded);
    }
    const auto folder = store::LocalStore::open(dir.path() / "cache").value();
    EXPECT_EQ(folder->held().value().at(store::ArtifactKind::compiled).files, 0U) << "nothing fits into a byte";
    EXPECT_EQ(folder->held().value().at(store::ArtifactKind::entries).files, 3U) << "two entries and their image";
    Cache cache{options()};
    EXPECT_THROW(cache.clear("f", "all"), Exception) << "a function has entries alone";
    EXPECT_EQ(cache.clear({}, "all"), 2U);
    EXPECT_THROW(cache.clear({}, "images"), Exception);
    how.max_bytes_by_kind = {{ArtifactKind::images, 1ULL << 30}};
    EXPECT_TRUE(
        failed_with(thrown_by([&] { Cache wrong{how}; }), ErrorCode::invalid_argument,
                    "max_bytes_by_kind has the kind 'images': expected entries, compiled, tuned, profiles or torch"));
}

} // namespace
} // namespace warmgraph::test::savings_test
