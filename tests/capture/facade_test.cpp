#include "child_process.hpp"
#include "facade_fixture.hpp"
#include "reseal.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/facade/cache_access.hpp"

namespace warmgraph::test::facade_test {
namespace {

using Facade = FacadeTest;

TEST_F(Facade, RecordsAtTheFirstCallAndReplaysLaterOnes)
{
    Cache cache{options()};
    Function f = add_one(cache);
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
    EXPECT_EQ(read(m_y), read(floats(1)));
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 1U);
    EXPECT_GT(cache.statistics().of(ArtifactKind::entries).making_ms, 0);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::torch).misses, 0U) << "not counted";
    EXPECT_EQ(entries().size(), 1U);
}

TEST_F(Facade, ASecondCacheReplaysWithoutRunningTheCallable)
{
    {
        Cache cache{options()};
        Function f = add_one(cache);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
        device.synchronize();
    }
    Cache cache{options()};
    int runs = 0;
    // The code identity (build id) and the interface are the same. This callable would only count its runs.
    Function f = cache.wrap("add_one", device, vector_spec(), [&runs](Recorder&) { ++runs; });
    const Buffer x = floats(10), y = device.allocate(k_count * 4);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::replayed);
    EXPECT_EQ(read(y), read(floats(11)));
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U);
    EXPECT_EQ(cache.statistics().images_loaded, 1U);
    EXPECT_NE(cache.statistics().of(ArtifactKind::entries).saved_ms, 0.0)
        << "counted; a stopped machine may make it negative";
}

/// During an upgrade, two versions of warmgraph share a folder.
TEST_F(Facade, ShowsThatANewerFormatsEntryIsThereAndLeavesItInItsPlace)
{
    Cache cache{options()};
    Function f = add_one(cache);
    f({{"x", m_x}, {"y", m_y}});
    device.synchronize();
    const auto path = entries().at(0);
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    Bytes bytes(as_bytes(text).begin(), as_bytes(text).end());
    poke(bytes, envelope_at::version, cachefmt::k_format_version + 1);
    reseal_marks(bytes);
    std::ofstream(path, std::ios::binary) << as_text(bytes);
    EXPECT_THAT(cache.readable("add_one"), HasSubstr("cannot be used: entry has format"));
    EXPECT_EQ(entries(), std::vector{path});
}

/// `warmgraph report` shows both first calls side by side.
TEST_F(Facade, LeavesWhereTheTimeOfAFirstCallWentWhenItIsRecordedAndWhenItIsLoaded)
{
    const auto usage_file = [this] {
        std::ifstream file(entries().at(0).parent_path() / "usage.json");
        return std::string{std::istreambuf_iterator<char>(file), {}};
    };
    const auto call = [this] {
        Cache cache{options()};
        Function f = add_one(cache);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
        device.synchronize();
    };
    call();
    const std::string recorded = usage_file();
    for (const char* phase : {"\"look up\"", "\"answer\"", "\"try\""})
        EXPECT_NE(recorded.find(phase), std::string::npos) << recorded;
    EXPECT_EQ(recorded.find("\"load\""), std::string::npos) << recorded;
    call();
    EXPECT_NE(usage_file().find("\"load\""), std::string::npos) << usage_file();
    EXPECT_NE(usage_file().find("\"try\""), std::string::npos) << "the cold times stay";
}

TEST_F(Facade, OfProgramsWithOneNameEachIsGuarded)
{
    const auto outcome = [this](const char* first, const char* second) {
        const Program one = device.program("put", first), two = device.program("put", second);
        Cache cache{options()};
        Spec spec;
        spec.outputs = {output("y", f32, {k_count})};
        spec.version = "1";
        spec.code = {one, two};
        Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
            r.stream().launch(one, "put", k_launch, r["y"], std::int32_t{0});
            r.stream().launch(two, "put", k_launch, r["y"], std::int32_t{1});
        });
        const Buffer y = device.upload<float>(std::vector<float>(k_count, 0.0F));
        const Outcome result = f({{"y", y}});
        const auto values = read(y);
        EXPECT_EQ(values[0], first[0] == ' ' ? 2.0F : 1.0F);
        EXPECT_EQ(values[1], second[0] == ' ' ? 2.0F : 1.0F);
        return result;
    };
    constexpr const char* k_one =
        "__kernel void put(__global float* y, int i) { if (get_global_id(0) == 0) y[i] = 1; }";
    constexpr const char* k_two =
        " __kernel void put(__global float* y, int i) { if (get_global_id(0) == 0) y[i] = 2; }";
    EXPECT_EQ(outcome(k_one, k_one), Outcome::recorded);
    EXPECT_EQ(outcome(k_one, k_one), Outcome::replayed);
    EXPECT_EQ(outcome(k_two, k_one), Outcome::recorded);
    EXPECT_EQ(outcome(k_one, k_two), Outcome::recorded);
    EXPECT_EQ(outcome(k_two, k_one), Outcome::replayed);
}

/// The library does not know in which binary the code is, so it could not decide on a hit. The function runs right, but
/// its recording is not shared.
TEST_F(Facade, WhatCodeOfNobodyKnowsWhichBinaryRecordsIsNotPublished)
{
    const auto on_the_heap = std::make_unique<int>(); // like a trampoline that a foreign language makes for a callback
    for (const float summand : {1.0F, 2.0F}) {
        Cache cache{options()};
        Spec spec = vector_spec();
        Function f = CacheAccess::wrap(
            cache, "f", device, spec,
            [&](Recorder& r) {
                r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], static_cast<std::int32_t>(summand));
            },
            on_the_heap.get());
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded);
        EXPECT_EQ(read(y), read(floats(summand)));
        EXPECT_THAT(f.report().reason, HasSubstr("'code.build_id'"));
        EXPECT_THAT(f.report().reason, HasSubstr("set Spec::version"));
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::replayed);
        EXPECT_TRUE(entries().empty());
    }
}

TEST_F(Facade, AWorkingDirectoryThatIsGoneTurnsCachingOff)
{
    const auto status = ChildProcess([this] {
                            const auto gone = dir.path() / "gone";
                            std::filesystem::create_directory(gone);
                            std::filesystem::current_path(gone);
                            std::filesystem::remove(gone);
                            CacheOptions relative = options();
                            relative.cache_dir = "cache";
                            const Cache cache{relative};
                            return cache.disabled_reason().empty() ? 1 : 0;
                        }).wait();
    EXPECT_EQ(status, 0);
}

TEST_F(Facade, ReportTellsOutcomeReasonAndPhases)
{
    const auto has_phase = [](const Report& report, std::string_view name) {
        return std::ranges::any_of(report.phases, [name](const auto& phase) { return phase.first == name; });
    };
    {
        Cache cache{options()};
        Function f = add_one(cache);
        f({{"x", m_x}, {"y", m_y}});
        const Report report = f.report();
        EXPECT_EQ(report.outcome, Outcome::recorded);
        EXPECT_EQ(report.reason, "no entry");
        EXPECT_GT(report.first_call_ms, 0);
        EXPECT_GE(report.recording_bytes, m_y.size()) << "it copies what the function writes";
        EXPECT_LT(report.recording_bytes, 64 * m_y.size());
        for (const auto* phase : {"look up", "prepare", "compile", "answer", "look", "try", "publish"})
            EXPECT_TRUE(has_phase(report, phase)) << phase;
        EXPECT_FALSE(has_phase(report, "first launch")) << "the function itself gave the result";
    }
    Cache cache{options()};
    Function f = add_one(cache);
    f({{"x", m_x}, {"y", m_y}});
    const Report report = f.report();
    EXPECT_EQ(report.outcome, Outcome::replayed);
    EXPECT_EQ(report.reason, "");
    EXPECT_EQ(report.recording_bytes, 0);
    for (const auto* phase : {"look up", "load", "build", "first launch"})
        EXPECT_TRUE(has_phase(report, phase)) << phase;
    for (const auto* phase : {"compile", "prepare", "answer", "look", "try"})
        EXPECT_FALSE(has_phase(report, phase)) << phase;
}

TEST_F(Facade, StateAdvancesExactlyOncePerCallColdAndWarm)
{
    const Buffer state_memory = floats(0), x = floats(0);
    Spec spec;
    spec.inputs = {input("x", f32, {k_count})};
    spec.states = {state("sum", state_memory)};
    spec.code = {program};
    const auto body = [this](Recorder& r) { r.stream().launch(program, "accumulate", k_launch, r["sum"], r["x"]); };
    for (int process = 0; process < 2; ++process) {
        Cache cache{options()};
        Function f = cache.wrap("accumulate", device, spec, body);
        for (int call = 0; call < 3; ++call) f({{"x", x}});
    }
    std::vector<float> expected(k_count);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i) * 7;
    EXPECT_EQ(read(state_memory), expected);
}

TEST_F(Facade, StatesHaveTypesAndTensorsHaveStridesWhichAreGuarded)
{
    const Buffer state_memory = floats(0), x = device.allocate(2 * k_count * 4);
    Spec spec;
    spec.inputs = {{"x", f32, {k_count / 2, 2}, {1, k_count / 2}}};
    spec.states = {state("sum", state_memory, f32)};
    spec.code = {program};
    const auto body = [this](Recorder& r) { r.stream().launch(program, "accumulate", k_launch, r["sum"], r["x"]); };
    Cache cache{options()};
    Function f = cache.wrap("accumulate", device, spec, body);
    EXPECT_EQ(f({{"x", x}}), Outcome::recorded) << f.report().reason;
    EXPECT_THAT(cache.readable("accumulate"), HasSubstr("f32[32,2] strides 1,32"));
    EXPECT_THAT(cache.readable("accumulate"), HasSubstr("f32[64]"));

    spec.states = {state("sum", state_memory)}; // the state's type is bytes
    Function other = Cache{options()}.wrap("accumulate", device, spec, body);
    EXPECT_EQ(other({{"x", x}}), Outcome::recorded) << "another type is another variant";
}

TEST_F(Facade, AnotherShapeBecomesAnotherVariant)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    Function f = cache.wrap("add_one", device, spec, [this](Recorder& r) {
        const auto n = static_cast<std::uint32_t>(r.sizes("x")[0]);
        r.stream().launch(program, "add_one", {.grid = {n / 16, 1, 1}, .block = {16, 1, 1}}, r["x"], r["y"]);
    });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
    const Tensor half_x{m_x, f32, {32}, {}}, half_y{m_y, f32, {32}, {}};
    EXPECT_EQ(f({{"x", half_x}, {"y", half_y}}), Outcome::recorded);
    EXPECT_THAT(f.report().reason, HasSubstr("input x: sizes"));
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
    EXPECT_EQ(f({{"x", half_x}, {"y", half_y}}), Outcome::replayed);
    EXPECT_EQ(entries().size(), 2U);
}

TEST_F(Facade, TheLeastRecentlyUsedVariantGoesFirst)
{
    CacheOptions limited = options();
    limited.max_variants = 2;
    Cache cache{limited};
    Function f = cache.wrap("add_one", device, vector_spec(), [this](Recorder& r) {
        const auto n = static_cast<std::uint32_t>(r.sizes("x")[0]);
        r.stream().launch(program, "add_one", {.grid = {n / 16, 1, 1}, .block = {16, 1, 1}}, r["x"], r["y"]);
    });
    const auto call = [&](std::int64_t n) {
        return f({{"x", Tensor{m_x, f32, {n}, {}}}, {"y", Tensor{m_y, f32, {n}, {}}}});
    };
    EXPECT_EQ(call(16), Outcome::recorded);
    EXPECT_EQ(call(32), Outcome::recorded);
    EXPECT_EQ(call(48), Outcome::recorded);
    EXPECT_EQ(entries().size(), 2U);
    EXPECT_EQ(call(16), Outcome::recorded) << "evicted in memory and on disk, so recorded again";
    EXPECT_EQ(call(48), Outcome::replayed);
}

TEST_F(Facade, ForkAndJoinBecomeEdges)
{
    const auto body = [this](Recorder& r) {
        const Address left = r.alloc("left", k_count * 4), right = r.alloc("right", k_count * 4);
        Stream& side = r.fork();
        r.stream().launch(program, "scale", k_launch, r["x"], left, 2.0F);
        side.launch(program, "scale", k_launch, r["x"], right, 3.0F);
        r.join(side);
        r.stream().launch(program, "add", k_launch, left, right, r["y"]);
    };
    std::vector<float> expected(k_count);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i) * 5;
    for (int process = 0; process < 2; ++process) {
        Cache cache{options()};
        Function f = cache.wrap("fork", device, vector_spec(), body);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), process == 0 ? Outcome::recorded : Outcome::replayed);
        EXPECT_EQ(read(y), expected);
        EXPECT_THAT(cache.readable("fork"), HasSubstr("scale"));
    }
}

TEST_F(Facade, CopyAndFillAreRecorded)
{
    const auto body = [this](Recorder& r) {
        const Address scratch = r.alloc("scratch", k_count * 4);
        r.stream().zero(scratch, k_count * 4);
        r.stream().copy(scratch, r["x"], k_count * 2);
        r.stream().launch(program, "add_one", k_launch, scratch, r["y"]);
    };
    std::vector<float> expected(k_count, 1.0F);
    for (std::size_t i = 0; i < expected.size() / 2; ++i) expected[i] = static_cast<float>(i) + 1;
    for (int process = 0; process < 2; ++process) {
        Cache cache{options()};
        Function f = cache.wrap("copies", device, vector_spec(), body);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
        EXPECT_EQ(f.report().outcome, process == 0 ? Outcome::recorded : Outcome::replayed) << f.report().reason;
        EXPECT_EQ(read(y), expected);
    }
}

TEST_F(Facade, MovedStateIsRebound)
{
    const Buffer first = floats(0), second = floats(100), y = device.allocate(k_count * 4);
    Spec spec;
    spec.outputs = {output("y", f32, {k_count})};
    spec.states = {weights("w", first)};
    spec.code = {program};
    Cache cache{options()};
    Function f = cache.wrap("weights", device, spec,
                            [this](Recorder& r) { r.stream().launch(program, "add_one", k_launch, r["w"], r["y"]); });
    EXPECT_EQ(f({{"y", y}}), Outcome::recorded);
    EXPECT_EQ(read(y)[0], 1.0F);
    f.bind("w", second);
    EXPECT_EQ(f({{"y", y}}), Outcome::replayed);
    EXPECT_EQ(read(y)[0], 101.0F);
    const Buffer third = floats(200);
    EXPECT_EQ(f({{"y", y}, {"w", third}}), Outcome::replayed) << "a call may move a state too";
    EXPECT_EQ(read(y)[0], 201.0F);
}

TEST_F(Facade, LaunchesInDifferentStreamsKeepTheirOrder)
{
    const Buffer sum = floats(0), x = floats(0);
    Spec spec;
    spec.inputs = {input("x", f32, {k_count})};
    spec.states = {state("sum", sum)};
    spec.code = {program};
    Cache cache{options()};
    Function f = cache.wrap("accumulate", device, spec, [this](Recorder& r) {
        r.stream().launch(program, "accumulate", k_launch, r["sum"], r["x"]);
    });
    Stream a = device.stream(), b = device.stream();
    for (int i = 0; i < 20; ++i) {
        f(a, {{"x", x}});
        f(b, {{"x", x}});
    }
    a.synchronize();
    b.synchronize();
    EXPECT_EQ(sum.read<float>()[1], 41.0F);
}

TEST_F(Facade, RanksShareImagesAndNotEntries)
{
    for (int rank = 0; rank < 2; ++rank) {
        CacheOptions of_rank = options();
        of_rank.world_size = 2;
        of_rank.global_rank = rank;
        of_rank.tp_rank = rank;
        Cache cache{of_rank};
        Function f = add_one(cache);
        EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
    }
    const auto found = entries();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].parent_path().parent_path().filename(), "world2global_rank0_tp_rank0");
    EXPECT_EQ(found[1].parent_path().parent_path().filename(), "world2global_rank1_tp_rank1");
    std::size_t images = 0;
    for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "cache" / "images"))
        images += item.is_regular_file() ? 1 : 0;
    EXPECT_EQ(images, 1U);
}

TEST_F(Facade, RankComesFromTheLaunchersEnvironment)
{
    ::setenv("WORLD_SIZE", "8", 1);
    ::setenv("RANK", "3", 1);
    CacheOptions from_environment = options();
    from_environment.world_size.reset();
    from_environment.global_rank.reset();
    {
        Cache cache{from_environment};
        Function f = add_one(cache);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
    }
    device.synchronize(); // the driver's threads must not read the environment while it changes
    ::unsetenv("WORLD_SIZE");
    ::unsetenv("RANK");
    ASSERT_EQ(entries().size(), 1U);
    EXPECT_EQ(entries()[0].parent_path().parent_path().filename(), "world8global_rank3");
}

TEST_F(Facade, FoldersAreModelInfoRankAndFunction)
{
    Cache cache{options()};
    Function f = add_one(cache);
    f({{"x", m_x}, {"y", m_y}});
    const auto relative = std::filesystem::relative(entries().at(0), cache.directory());
    auto part = relative.begin();
    EXPECT_THAT((part++)->string(), testing::MatchesRegex("toy_static_clgraphcache_[0-9a-f]+"));
    EXPECT_EQ((part++)->string(), "world1global_rank0");
    EXPECT_EQ((part++)->string(), "add_one");
}

TEST_F(Facade, SummaryCountsHitsMissesAndSavings)
{
    Cache cold{options()};
    Function f = add_one(cold);
    f({{"x", m_x}, {"y", m_y}});
    EXPECT_THAT(cold.summary(), StartsWith("warmgraph: 0 hits, 1 miss, 1 image, "));
    Cache warm{options()};
    Function g = add_one(warm);
    g({{"x", m_x}, {"y", m_y}});
    EXPECT_THAT(warm.summary(), StartsWith("warmgraph: 1 hit, 0 misses, 1 image, "));
    EXPECT_THAT(warm.summary(), HasSubstr(" saved"));
}

TEST_F(Facade, ClearRemovesAFunctionsEntries)
{
    Cache cache{options()};
    Function f = add_one(cache, "first"), g = add_one(cache, "second");
    f({{"x", m_x}, {"y", m_y}});
    g({{"x", m_x}, {"y", m_y}});
    EXPECT_EQ(entries().size(), 2U);
    EXPECT_EQ(cache.clear("first"), 1U);
    EXPECT_EQ(entries().size(), 1U);
    EXPECT_EQ(cache.clear(), 1U);
    EXPECT_TRUE(entries().empty());
    const auto images = dir.path() / "cache" / "images";
    for (const auto& item : std::filesystem::recursive_directory_iterator(images))
        EXPECT_FALSE(item.is_regular_file()) << item.path() << ": nothing names it";
}

TEST_F(Facade, ClearLeavesOtherConfigurationsOfTheModelAlone)
{
    CacheOptions other = options();
    other.config["dtype"] = "f16";
    for (const CacheOptions& of_model : {options(), other}) {
        Cache cache{of_model};
        Function f = add_one(cache);
        f({{"x", m_x}, {"y", m_y}});
    }
    Cache cache{options()};
    EXPECT_EQ(cache.clear(), 1U);
    EXPECT_EQ(entries().size(), 1U);
}

TEST_F(Facade, AliasingIsAGuardAndAliasedTensorsReplayRight)
{
    Cache cache{options()};
    Function f = add_one(cache);
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
    const Buffer both = floats(0);
    EXPECT_EQ(f({{"x", both}, {"y", both}}), Outcome::recorded) << "aliasing tensors are another variant";
    EXPECT_THAT(f.report().reason, HasSubstr("alias"));
    EXPECT_EQ(read(both)[0], 1.0F);
    EXPECT_EQ(f({{"x", both}, {"y", both}}), Outcome::replayed);
    EXPECT_EQ(read(both)[0], 2.0F);
}

} // namespace
} // namespace warmgraph::test::facade_test
