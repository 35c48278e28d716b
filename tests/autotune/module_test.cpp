// Tests the tuned kernels of a module: they are in one file, are loaded ahead of their use, and can be taken to other
// folders.
#include "tuning_fixture.hpp"

namespace warmgraph::test::module_test {
namespace {

class TuningModuleTest : public TuningTest {
protected:
    /// Returns kernel() with another name.
    [[nodiscard]] TunableKernel kernel_called(const std::string& name)
    {
        TunableKernel named = kernel();
        named.name = name;
        return named;
    }
    /// The result of a start that compiles a module of these kernels: the outcome for each kernel, and the counters of
    /// the tuner.
    struct Started {
        std::vector<TuningOutcome> outcomes;
        TuningStatistics statistics;
        std::size_t loaded = 0;
    };
    Started start(const std::string& module, const std::vector<std::string>& names, Policy policy = Policy::read_write,
                  const std::string& tag = "")
    {
        CacheOptions how = options(policy);
        how.cache_key_tag = tag;
        Cache cache{how};
        Tuner tuner = tuner_of(cache);
        TuningModule begun = tuner.begin_module(module, "// a comment\ncode");
        Started started{{}, {}, begun.loaded()};
        for (const std::string& name : names)
            started.outcomes.push_back(begun.tune(kernel_called(name)).report().outcome);
        begun.end();
        started.statistics = tuner.statistics();
        return started;
    }
    void remove_files(const std::string& extension) const
    {
        for (const auto& file : files(extension)) std::filesystem::remove(file);
    }

    static constexpr TuningOutcome k_tuned = TuningOutcome::tuned, k_stored = TuningOutcome::stored;
};

TEST_F(TuningModuleTest, OfAnotherTagIsAnother)
{
    EXPECT_THAT(start("model", {"a"}).outcomes, ElementsAre(k_tuned));
    EXPECT_THAT(start("model", {"a"}, Policy::read_write, "blue").outcomes, ElementsAre(k_tuned));
    EXPECT_EQ(files(".module_configs").size(), 2U);
    EXPECT_EQ(files(".best_config").size(), 2U);
    const Started again = start("model", {"a"}, Policy::read_write, "blue");
    EXPECT_THAT(again.outcomes, ElementsAre(k_stored));
    EXPECT_EQ(again.loaded, 1U);
    EXPECT_THAT(start("model", {"a"}).outcomes, ElementsAre(k_stored)) << "without a tag, as before";
}

TEST_F(TuningModuleTest, IsLoadedAheadAndServesWhereItsKernelsFilesAreGone)
{
    const Started cold = start("model", {"a", "b"});
    EXPECT_THAT(cold.outcomes, ElementsAre(k_tuned, k_tuned));
    EXPECT_EQ(cold.loaded, 0U);
    EXPECT_EQ(files(".module_configs").size(), 1U);
    EXPECT_EQ(files(".best_config").size(), 2U);
    remove_files(".best_config");
    const Started warm = start("model", {"b", "a"});
    EXPECT_THAT(warm.outcomes, ElementsAre(k_stored, k_stored));
    EXPECT_EQ(warm.loaded, 2U);
    EXPECT_EQ(warm.statistics.carried, 2U);
    EXPECT_EQ(warm.statistics.tuned, 0U);
    EXPECT_EQ(files(".best_config").size(), 2U) << "they have files of their own again";
    EXPECT_EQ(start("model", {"a"}).statistics.carried, 0U);
}

TEST_F(TuningModuleTest, ANewModelThatSharesKernelsCarriesThemOn)
{
    static_cast<void>(start("old", {"shared", "own"}));
    EXPECT_THAT(start("new", {"shared"}).outcomes, ElementsAre(k_stored));
    remove_files(".best_config");
    ASSERT_EQ(files(".module_configs").size(), 2U);
    // Removes all files but the one of the new model.
    for (const auto& file : files(".module_configs"))
        if (std::string(file_bytes(file).data(), file_bytes(file).size()).find("\"old\"") != std::string::npos)
            std::filesystem::remove(file);
    EXPECT_THAT(start("new", {"shared", "own"}).outcomes, ElementsAre(k_stored, k_tuned));
}

TEST_F(TuningModuleTest, WhatWasLoadedAndNotAskedForStays)
{
    static_cast<void>(start("model", {"a", "b"}));
    static_cast<void>(start("model", {"c"}));
    remove_files(".best_config");
    EXPECT_THAT(start("model", {"a", "b", "c"}).outcomes, ElementsAre(k_stored, k_stored, k_stored));
}

TEST_F(TuningModuleTest, AKernelsOwnFileIsTheNewerOne)
{
    static_cast<void>(start("model", {"a"}));
    m_spoils = 1;
    {
        Cache other{options(Policy::refresh)}; // stands for another rank, which finds another winner
        const Tuned theirs = tuner_of(other).tune(kernel_called("a"));
        ASSERT_NE(theirs.config().at("WORK"), 1);
    }
    Cache cache{options()};
    Tuner tuner = tuner_of(cache);
    EXPECT_NE(tuner.begin_module("model", "code").tune(kernel_called("a")).config().at("WORK"), 1);
}

TEST_F(TuningModuleTest, NothingIsWrittenWhereNothingIsNewOrThePolicySaysSo)
{
    static_cast<void>(start("model", {"a"}));
    const auto file = files(".module_configs").at(0);
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    static_cast<void>(start("model", {"a"}));
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms::owner_read) << "it is the same file";
    EXPECT_THAT(start("other", {"a"}, Policy::read_only).outcomes, ElementsAre(k_stored));
    static_cast<void>(start("empty", {}));
    EXPECT_EQ(files(".module_configs").size(), 1U);
}

TEST_F(TuningModuleTest, DamageCostsWhatWasCarriedAndNothingElse)
{
    static_cast<void>(start("model", {"a"}));
    auto bytes = file_bytes(files(".module_configs").at(0));
    bytes[bytes.size() / 2] ^= 1;
    write_file(files(".module_configs").at(0), bytes);
    const Started with_own_file = start("model", {"a"});
    EXPECT_THAT(with_own_file.outcomes, ElementsAre(k_stored));
    EXPECT_EQ(with_own_file.loaded, 0U);
    EXPECT_EQ(with_own_file.statistics.faults, 1U);
    EXPECT_EQ(start("model", {"a"}).loaded, 1U) << "it was written anew";
}

TEST_F(TuningModuleTest, WhatItCarriesIsJudgedAsAFileIs)
{
    static_cast<void>(start("model", {"heavy"}));
    remove_files(".best_config");
    m_kernel.candidates.push_back({{"WORK", 32}});
    EXPECT_THAT(start("model", {"heavy"}).outcomes, ElementsAre(k_tuned));
}

TEST_F(TuningModuleTest, ARejectedWinnerIsCarriedNoMore)
{
    static_cast<void>(start("model", {"heavy"}));
    m_spoils = 1;
    EXPECT_THAT(start("model", {"heavy"}).outcomes, ElementsAre(TuningOutcome::untuned));
    const Started next = start("model", {"heavy"});
    EXPECT_THAT(next.outcomes, ElementsAre(k_tuned));
    EXPECT_EQ(next.loaded, 0U);
}

TEST_F(TuningModuleTest, IsStoredWhenItGoesAndEndsOnce)
{
    Cache cache{options()};
    Tuner tuner = tuner_of(cache);
    {
        TuningModule begun = tuner.begin_module("model");
        TuningModule moved = std::move(begun);
        static_cast<void>(moved.tune(kernel()));
    }
    EXPECT_EQ(files(".module_configs").size(), 1U);
    TuningModule again = tuner.begin_module("model");
    again.end();
    again.end();
    EXPECT_TRUE(failed_with(thrown_by([&] { static_cast<void>(again.tune(kernel())); }), ErrorCode::invalid_argument));
    EXPECT_TRUE(thrown_by([&] { static_cast<void>(tuner.begin_module("../x")); }));
}

} // namespace
} // namespace warmgraph::test::module_test
