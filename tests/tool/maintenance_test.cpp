#include "command_fixture.hpp"

namespace warmgraph::test::maintenance_test {
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

/// F1: the command finds it, whichever field it is in. Each bit is the store's test.
TEST_F(Check, FindsAFlippedBitAnywhereInTheEnvelope)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    const std::string good = text_of(path_of(entry));
    for (std::size_t byte = 0; byte < cachefmt::k_envelope_bytes; byte += byte < 48 ? 1 : 16) {
        std::string bad = good;
        bad[byte] = static_cast<char>(bad[byte] ^ (1 << (byte % 8)));
        std::ofstream(path_of(entry), std::ios::binary) << bad;
        const CommandResult look = run("check --json");
        ASSERT_EQ(look.status, 1) << "byte " << byte << ": " << look.out;
        ASSERT_EQ(look.json()["damage"].size(), 1U) << "byte " << byte;
    }
    EXPECT_EQ(run("check --repair").status, 0);
    EXPECT_FALSE(std::filesystem::exists(path_of(entry)));
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
} // namespace warmgraph::test::maintenance_test
