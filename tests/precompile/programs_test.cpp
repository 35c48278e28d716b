// Tests programs of a cache on PoCL. A second shape, function or process compiles nothing. A changed program is
// compiled again, and the change is named. With the policy no_compile, nothing is compiled.
#include <cstdlib>

#include "cache/cache_impl.hpp"
#include "facade_fixture.hpp"
#include "faulty_file_system.hpp"

namespace warmgraph::test::programs_test {
namespace {

namespace fs = std::filesystem;

class ProgramTest : public FacadeTest {
protected:
    /// The program as a new process makes it, before it is compiled.
    [[nodiscard]] Program fresh() const { return device.program("small", m_source, m_options); }
    [[nodiscard]] Function wrap(Cache& cache, const std::string& name = "add_one", std::int64_t count = k_count) const
    {
        const Program code = fresh();
        Spec spec = x_to_y(f32, count, {code});
        return cache.wrap(name, device, spec, [code, count](Recorder& r) {
            const Launch launch{.grid = {static_cast<std::uint32_t>(count) / 16, 1, 1}, .block = {16, 1, 1}};
            r.stream().launch(code, "add_one", launch, r["x"], r["y"]);
        });
    }
    /// Calls the function in a new cache, and returns the cache's counters.
    Statistics run(Policy policy = Policy::read_write, const std::string& name = "add_one",
                   std::int64_t count = k_count)
    {
        return run_in(options(policy), name, count);
    }
    Statistics run_in(const CacheOptions& how, const std::string& name = "add_one", std::int64_t count = k_count)
    {
        Cache cache{how};
        Function f = wrap(cache, name, count);
        const Buffer x = floats(0, count), y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        m_outcome = f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(1, count)));
        return cache.statistics();
    }
    [[nodiscard]] std::vector<store::Miss> misses() const
    {
        const auto store = store::LocalStore::open(dir.path() / "cache");
        return store ? (*store)->program_misses().value_or(store::Misses{}).list : std::vector<store::Miss>{};
    }
    void write(const std::string& name, const std::string& text) const
    {
        fs::create_directories((dir.path() / name).parent_path());
        std::ofstream(dir.path() / name) << text;
    }

    std::string m_source = k_small_kernels, m_options;
    Outcome m_outcome = Outcome::eager;
};

TEST_F(ProgramTest, ASecondShapeAndASecondFunctionCompileNothing)
{
    const Statistics cold = run();
    EXPECT_EQ(m_outcome, Outcome::recorded);
    EXPECT_EQ(cold.of(ArtifactKind::compiled).made, 1U);
    EXPECT_EQ(cold.of(ArtifactKind::compiled).misses, 1U);
    EXPECT_EQ(cold.of(ArtifactKind::compiled).hits, 0U);
    EXPECT_EQ(cold.of(ArtifactKind::compiled).load_ms, 0);
    EXPECT_GT(cold.of(ArtifactKind::compiled).making_ms, 0);
    EXPECT_EQ(files(".compiled").size(), 1U);
    for (const auto& [name, count] : {std::pair{"add_one", std::int64_t{128}}, {"other", std::int64_t{64}}}) {
        const Statistics next = run(Policy::read_write, name, count);
        EXPECT_EQ(m_outcome, Outcome::recorded) << name;
        EXPECT_EQ(next.of(ArtifactKind::compiled).made, 0U) << name;
        EXPECT_EQ(next.of(ArtifactKind::compiled).hits, 1U) << name;
        EXPECT_GT(next.of(ArtifactKind::compiled).load_ms, 0) << name;
        EXPECT_EQ(next.of(ArtifactKind::entries).made, 1U) << name;
    }
    EXPECT_EQ(files(".compiled").size(), 1U);
    EXPECT_EQ(run().of(ArtifactKind::compiled).hits, 0U) << "a hit loads no program";
    EXPECT_EQ(m_outcome, Outcome::replayed);
}

TEST_F(ProgramTest, ASecondRankCompilesNothing)
{
    static_cast<void>(run());
    CacheOptions rank = options();
    rank.world_size = 2;
    rank.global_rank = 1;
    const Statistics next = run_in(rank);
    EXPECT_EQ(m_outcome, Outcome::recorded);
    EXPECT_EQ(next.of(ArtifactKind::compiled).made, 0U);
}

TEST_F(ProgramTest, WhatIsRecordedWithALoadedProgramIsReplayed)
{
    static_cast<void>(run());
    static_cast<void>(run(Policy::read_write, "other"));
    EXPECT_EQ(run(Policy::require_hit, "other").of(ArtifactKind::entries).hits, 1U);
    EXPECT_EQ(run(Policy::refresh, "other").of(ArtifactKind::entries).made, 1U) << "the same graph: not recompiled";
    EXPECT_EQ(m_outcome, Outcome::recorded);
}

TEST_F(ProgramTest, AnotherBlockSizeIsKeptBesideTheFirst)
{
    static_cast<void>(run());
    const auto with_block = [&](std::uint32_t block) {
        Cache cache{options()};
        const Program code = fresh();
        Spec spec = vector_spec();
        spec.code = {code};
        Function f = cache.wrap(fmt::format("block{}", block), device, spec, [code, block](Recorder& r) {
            r.stream().launch(code, "add_one", {.grid = {64 / block, 1, 1}, .block = {block, 1, 1}}, r["x"], r["y"]);
        });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded) << f.report().reason;
        EXPECT_EQ(read(y), read(floats(1)));
        return cache.statistics();
    };
    EXPECT_EQ(with_block(32).of(ArtifactKind::compiled).hits, 1U);
    EXPECT_EQ(with_block(8).of(ArtifactKind::compiled).hits, 1U);
    EXPECT_EQ(files(".compiled").size(), 1U) << "one image, which is ready for all three";
}

TEST_F(ProgramTest, WhatChangedIsNamed)
{
    write("headers/one.h", "#define ONE 1.0f\n");
    m_source = "#include \"one.h\"\n" + m_source;
    m_options = "-I " + (dir.path() / "headers").string();
    EXPECT_EQ(run().of(ArtifactKind::compiled).made, 1U);
    EXPECT_THAT(misses().at(0).reason, HasSubstr("no compiled image of 'small' is stored"));
    write("headers/one.h", "#define ONE 1.00f\n");
    EXPECT_EQ(run(Policy::read_write, "f2").of(ArtifactKind::compiled).made, 1U);
    ASSERT_EQ(misses().at(0).differences.size(), 1U);
    EXPECT_EQ(misses().at(0).differences[0].fact, "header one.h");
    m_options += " -D MORE=1";
    EXPECT_EQ(run(Policy::read_write, "f3").of(ArtifactKind::compiled).made, 1U);
    ASSERT_EQ(misses().at(0).differences.size(), 1U);
    EXPECT_EQ(misses().at(0).differences[0].fact, "options");
    EXPECT_EQ(misses().at(0).differences[0].now, "-D MORE=1");
    m_source += "\n";
    EXPECT_EQ(run(Policy::read_write, "f4").of(ArtifactKind::compiled).made, 1U);
    ASSERT_EQ(misses().at(0).differences.size(), 1U);
    EXPECT_EQ(misses().at(0).differences[0].fact, "source");
    EXPECT_EQ(misses().size(), 1U) << "the last one of each program";
}

TEST_F(ProgramTest, AnotherCompilerIsAMiss)
{
    static_cast<void>(run());
    ::setenv("POCL_MAX_WORK_GROUP_SIZE", "4096", 1); // PoCL reads this variable when it starts, and the key contains it
    const Statistics other = run(Policy::read_write, "other");
    ::unsetenv("POCL_MAX_WORK_GROUP_SIZE");
    EXPECT_EQ(other.of(ArtifactKind::compiled).made, 1U);
    EXPECT_EQ(misses().at(0).differences.at(0).fact, "compiler");
}

TEST_F(ProgramTest, WhatOnlyTheCompilerCanKnowIsNotKept)
{
    write("headers/one.h", "#define ONE 1.0f\n");
    m_source = "#define NAME \"one.h\"\n#include NAME\n" + m_source;
    m_options = "-I " + (dir.path() / "headers").string();
    EXPECT_EQ(run().of(ArtifactKind::compiled).made, 1U);
    EXPECT_EQ(files(".compiled").size(), 0U);
    EXPECT_EQ(run(Policy::read_write, "other").of(ArtifactKind::compiled).made, 1U);
}

TEST_F(ProgramTest, ADamagedImageIsACountedMiss)
{
    static_cast<void>(run());
    auto bytes = file_bytes(files(".compiled").at(0));
    bytes[bytes.size() / 2] ^= 1;
    write_file(files(".compiled").at(0), bytes);
    const Statistics next = run(Policy::read_write, "other");
    EXPECT_EQ(next.of(ArtifactKind::compiled).made, 1U);
    EXPECT_EQ(next.cache_faults, 1U);
    EXPECT_EQ(run(Policy::read_write, "third").of(ArtifactKind::compiled).hits, 1U) << "it was put again";
}

TEST_F(ProgramTest, AFolderThatIsOnlyReadServes)
{
    static_cast<void>(run());
    const Statistics next = run(Policy::read_only, "other");
    EXPECT_EQ(m_outcome, Outcome::eager);
    EXPECT_EQ(next.of(ArtifactKind::compiled).hits, 1U);
    m_options = "-D OTHER";
    EXPECT_EQ(run(Policy::read_only, "other").of(ArtifactKind::compiled).made, 1U);
    EXPECT_EQ(files(".compiled").size(), 1U) << "nothing was kept";
}

TEST_F(ProgramTest, AFullDiskCostsTimeOnly)
{
    for (std::uint64_t nth = 1; nth <= 40; nth += 3) {
        FaultyFileSystem disk;
        Cache cache = CacheAccess::open(options(), disk);
        disk.fail_at(nth, ErrorCode::no_space);
        Function f = wrap(cache, fmt::format("f{}", nth));
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(1))) << nth;
    }
}

// --- The policy no_compile

TEST_F(ProgramTest, NoCompileRecordsWithWhatWasCompiled)
{
    static_cast<void>(run());
    const Statistics served = run(Policy::no_compile, "other");
    EXPECT_EQ(m_outcome, Outcome::recorded);
    EXPECT_EQ(served.of(ArtifactKind::compiled).hits, 1U);
    EXPECT_EQ(served.of(ArtifactKind::compiled).made, 0U);
    EXPECT_EQ(served.of(ArtifactKind::compiled).refused, 0U);
    EXPECT_EQ(run(Policy::no_compile, "other").of(ArtifactKind::entries).hits, 1U);
}

TEST_F(ProgramTest, NoCompileRefusesWhatWouldHaveToBeCompiled)
{
    static_cast<void>(run());
    m_options = "-D OTHER=1";
    Cache cache{options(Policy::no_compile)};
    Function f = wrap(cache);
    const auto thrown = thrown_by([&] { f({{"x", m_x}, {"y", m_y}}); });
    ASSERT_TRUE(failed_with(thrown, ErrorCode::miss_forbidden));
    EXPECT_THAT(thrown->what(), AllOf(HasSubstr("program 'small'"), HasSubstr("options ((none), here -D OTHER=1)"),
                                      HasSubstr("warmgraph precompile")));
    EXPECT_EQ(cache.statistics().of(ArtifactKind::compiled).refused, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 0U);
    EXPECT_THAT(cache.summary(), HasSubstr("1 program refused"));
    EXPECT_EQ(misses().at(0).policy, "no_compile");
}

TEST_F(ProgramTest, NoCompileHoldsWhereThereIsNoFolderAndOutsideOfFunctions)
{
    write("cache", "a file, no folder");
    Cache cache{options(Policy::no_compile)};
    Function f = wrap(cache);
    EXPECT_EQ(thrown_by([&] { f({{"x", m_x}, {"y", m_y}}); })->code(), ErrorCode::miss_forbidden);
    Stream stream = device.stream();
    EXPECT_EQ(thrown_by([&] { stream.launch(fresh(), "add_one", k_launch, m_x, m_y); })->code(),
              ErrorCode::miss_forbidden);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::compiled).refused, 2U);
}

TEST_F(ProgramTest, TheEnvironmentSaysNoCompile)
{
    ::setenv("WARMGRAPH_POLICY", "no_compile", 1);
    CacheOptions asked = options();
    asked.policy.reset();
    Cache cache{asked};
    ::unsetenv("WARMGRAPH_POLICY");
    Function f = wrap(cache);
    EXPECT_TRUE(thrown_by([&] { f({{"x", m_x}, {"y", m_y}}); }));
}

TEST_F(ProgramTest, AFunctionMayForbidCompilingForItself)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    const Program code = fresh();
    spec.code = {code};
    spec.policy = Policy::no_compile;
    Function f = cache.wrap("f", device, spec,
                            [code](Recorder& r) { r.stream().launch(code, "add_one", k_launch, r["x"], r["y"]); });
    EXPECT_TRUE(thrown_by([&] { f({{"x", m_x}, {"y", m_y}}); }));
    Function g = wrap(cache, "g");
    EXPECT_EQ(g({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
}

TEST_F(ProgramTest, SignedFoldersTakeSignedImagesAlone)
{
    static_cast<void>(run());
    CacheOptions strict = options();
    strict.signing.sign_with = "ci:ed25519:" + std::string(64, 'b');
    strict.signing.require = true;
    Statistics first = run_in(strict, "other");
    EXPECT_EQ(first.of(ArtifactKind::compiled).made, 1U) << "the stored one is not signed";
    EXPECT_EQ(run_in(strict, "third").of(ArtifactKind::compiled).hits, 1U);
}

} // namespace
} // namespace warmgraph::test::programs_test
