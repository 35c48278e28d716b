#include "command_fixture.hpp"

namespace warmgraph::test {
namespace {

using ::testing::HasSubstr;

class Check : public CommandTest {};

TEST_F(Check, FindsNothingInASoundCache)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode));
    const CommandResult result = run("check");
    EXPECT_EQ(result.status, 0) << result.out;
    EXPECT_THAT(result.out, HasSubstr("no damage found"));
}

TEST_F(Check, ReportsDamageAndRepairsOnlyWhenAsked)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    damage(path_of(entry));

    const CommandResult look = run("check");
    EXPECT_EQ(look.status, 1);
    EXPECT_THAT(look.out, HasSubstr("corrupt"));
    EXPECT_THAT(look.out, HasSubstr("warmgraph check --repair"));
    EXPECT_TRUE(std::filesystem::exists(path_of(entry)));

    const CommandResult json = run("check --json");
    EXPECT_EQ(json.status, 1);
    EXPECT_EQ(json.json()["damage"][0]["code"], "corrupt");

    const CommandResult repair = run("check --repair");
    EXPECT_EQ(repair.status, 0) << repair.out << repair.error;
    EXPECT_THAT(repair.out, HasSubstr("repaired"));
    EXPECT_FALSE(std::filesystem::exists(path_of(entry)));
    EXPECT_EQ(run("check").status, 0);
}

TEST_F(Check, RepairRefusesAFolderThatIsNoCache)
{
    plant_foreign_files();
    const auto before = snapshot(cache());
    const CommandResult look = run("check");
    EXPECT_EQ(look.status, 1);
    EXPECT_THAT(look.out, HasSubstr("no mark of warmgraph"));
    for (const char* arguments : {"check --repair", "check --repair --json"}) {
        const CommandResult repair = run(arguments);
        EXPECT_EQ(repair.status, 3);
        EXPECT_THAT(repair.error, HasSubstr("has no CACHEDIR.TAG of warmgraph and holds '"));
    }
    EXPECT_EQ(snapshot(cache()), before);
}

} // namespace
} // namespace warmgraph::test
