#include <sys/stat.h>

#include "command_fixture.hpp"

namespace warmgraph::test::maintenance_test {
namespace {

class Check : public CommandTest {};

TEST_F(Check, FindsNothingInASoundCache)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode));
    const CommandResult result = run(0, "check");
    EXPECT_EQ(result.out, cache().string() + ": no damage found (1 entry, 0 images, 0 other objects)\n");
    EXPECT_EQ(run("check tiny-llama/decode").out, "tiny-llama/decode: no damage found (1 entry)\n");
    EXPECT_EQ(run("check --json").json()["folder"]["entries"], 1);
}

TEST_F(Check, TakesOneNameAndMendsOnlyTheWholeFolder)
{
    publish(*open_store(), sample_entry(k_decode));
    EXPECT_THAT(run("check a b").error, HasSubstr("'a' and 'b' are two names"));
    EXPECT_EQ(run("check --repair tiny-llama").status, 2);
    EXPECT_THAT(run("check nothing.wgb").out, HasSubstr("nothing.wgb  not_found"));
    EXPECT_EQ(run("check tiny-llama nothing.wgb").status, 1);
}

TEST_F(Check, ReportsDamageAndRepairsOnlyWhenAsked)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    damage(path_of(entry));

    const CommandResult look = run(1, "check");
    EXPECT_THAT(look.out, HasSubstr("corrupt"));
    EXPECT_THAT(look.out, HasSubstr("warmgraph check --repair"));
    EXPECT_TRUE(std::filesystem::exists(path_of(entry)));

    const CommandResult json = run(1, "check --json");
    EXPECT_EQ(json.json()["damage"][0]["code"], "corrupt");

    const CommandResult repair = run(0, "check --repair");
    EXPECT_THAT(repair.out, HasSubstr("repaired"));
    EXPECT_FALSE(std::filesystem::exists(path_of(entry)));
    const CommandResult after = run(0, "check");
    EXPECT_THAT(after.out, HasSubstr("1 file in quarantine"));
}

TEST_F(Check, ReportsAFolderThatMayNotBeUsedAndTheRest)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    ASSERT_TRUE(store->publish_image(Bytes(100)));
    damage(path_of(entry));
    ASSERT_EQ(::chmod((cache() / "images").c_str(), 0777), 0);
    const CommandResult look = run(1, "check");
    EXPECT_THAT(look.out, HasSubstr("permission_denied  cache folder " + cache().string() + "/images may be"));
    EXPECT_THAT(look.out, HasSubstr("corrupt"));
}

/// Promise F1: the command finds damage in any field. Each bit is flipped in the store's tests.
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
    const CommandResult look = run(1, "check");
    EXPECT_THAT(look.out, HasSubstr("no CACHEDIR.TAG of warmgraph"));
    for (const char* arguments : {"check --repair", "check --repair --json"}) {
        const CommandResult repair = run(3, arguments);
        EXPECT_THAT(repair.error, HasSubstr("has no CACHEDIR.TAG of warmgraph, but contains '"));
    }
    EXPECT_EQ(snapshot(cache()), before);
}

} // namespace
} // namespace warmgraph::test::maintenance_test
