#include "command_fixture.hpp"

namespace warmgraph::test::prune_test {
namespace {

class PruneVerb : public CommandTest {
protected:
    PruneVerb()
    {
        publish(*open_store(), sample_entry(k_decode));
        for (const auto& item : std::filesystem::recursive_directory_iterator(cache()))
            if (item.is_regular_file())
                std::filesystem::last_write_time(item, std::filesystem::file_time_type::clock::now() -
                                                           std::chrono::hours(72));
    }
    [[nodiscard]] bool is_there() const { return std::filesystem::exists(path_of(sample_entry(k_decode))); }
};

TEST_F(PruneVerb, LeavesWhatTheBudgetAllows)
{
    const CommandResult result = run(0, "prune");
    EXPECT_THAT(result.out, HasSubstr("removed 0 entries"));
    EXPECT_TRUE(is_there());
}

TEST_F(PruneVerb, TakesASizeOrTheEnvironmentsAndSaysFirstWhatWouldGo)
{
    const CommandResult dry = run(0, "prune --to 0 --dry-run");
    EXPECT_THAT(dry.out, HasSubstr("would remove 1 entry"));
    EXPECT_TRUE(is_there());
    const auto planned = run("prune --dry-run --json", {{"WARMGRAPH_CACHE_BYTES", "1"}}).json();
    EXPECT_EQ(planned["would_remove"]["entries"]["files"], 1);
    EXPECT_EQ(planned["after"]["files"], 0);
    EXPECT_EQ(planned["in_use"], 0);
    const auto removed = run("prune --json", {{"WARMGRAPH_CACHE_BYTES", "1"}}).json();
    EXPECT_EQ(removed["removed"], planned["would_remove"]);
    EXPECT_FALSE(is_there());
}

TEST_F(PruneVerb, TakesAKindAndLeavesTheOthers)
{
    const auto planned = run("prune --kind compiled --to 0 --dry-run --json").json();
    EXPECT_EQ(planned["before"]["files"], 0);
    EXPECT_EQ(planned["would_remove"]["entries"]["files"], 0);
    EXPECT_THAT(run("prune --kind entries --to 0 --dry-run").out,
                HasSubstr("0 B in 0 files of 'entries' would be left"));
    EXPECT_TRUE(is_there());
    EXPECT_THAT(run("prune --kind tuned --to 0").out, HasSubstr("removed 0 entries"));
    EXPECT_TRUE(is_there());
    const auto removed = run("prune --json", {{"WARMGRAPH_CACHE_BYTES", "1G,entries=1"}}).json();
    EXPECT_EQ(removed["removed"]["entries"]["files"], 1);
    EXPECT_FALSE(is_there());
    EXPECT_EQ(run("prune --kind images").status, 2);
    EXPECT_THAT(run("prune", {{"WARMGRAPH_CACHE_BYTES", "images=1G"}}).error,
                HasSubstr("the kind 'images': expected entries"));
}

TEST_F(PruneVerb, TakesAnAge)
{
    EXPECT_THAT(run("prune --older 4").out, HasSubstr("removed 0 entries"));
    EXPECT_THAT(run("prune --older 200000").out, HasSubstr("removed 0 entries")) << "longer than clocks count";
    EXPECT_THAT(run("prune --older 2").out, HasSubstr("removed 1 entry"));
    EXPECT_FALSE(is_there());
}

TEST_F(PruneVerb, SaysWhatStaysBecauseItIsUsed)
{
    const auto store = open_store();
    ASSERT_TRUE(store->entry(sample_entry(k_decode).header.key).value());
    EXPECT_THAT(run("prune --to 0").out, HasSubstr("1 entry is used by a living process"));
    EXPECT_TRUE(is_there());
}

TEST_F(PruneVerb, FollowsALinkToACacheThatIsShared)
{
    const auto link = cache().parent_path() / "link";
    std::filesystem::create_directory_symlink(cache(), link);
    for (const auto& item : std::filesystem::recursive_directory_iterator(cache()))
        std::filesystem::permissions(item, item.is_directory() ? std::filesystem::perms(02770)
                                                               : std::filesystem::perms(0660));
    std::filesystem::permissions(cache(), std::filesystem::perms(02770));
    for (const char* verb : {"ls", "prune --to 0"}) {
        const CommandResult result = run(0, std::string(verb) + " --cache-dir " + link.string());
    }
    EXPECT_FALSE(is_there());
}

TEST_F(PruneVerb, RefusesWhatIsNoSizeOrAge)
{
    for (const char* arguments : {"prune --to much", "prune --to ''", "prune --to -1", "prune --older soon"}) {
        const CommandResult result = run(arguments);
        EXPECT_EQ(result.status, 2) << arguments;
        EXPECT_TRUE(is_there());
    }
    EXPECT_THAT(run("prune --to much").error, HasSubstr("expected a size like 8G"));
    EXPECT_EQ(run("prune --cache-dir nowhere").status, 0);
}

} // namespace
} // namespace warmgraph::test::prune_test
