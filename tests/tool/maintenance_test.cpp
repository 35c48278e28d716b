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

class Clear : public CommandTest {
protected:
    Clear()
    {
        m_prompt.function = "prompt";
        m_other.model_info = "other_static_clgraphcache_0123456789ab";
        auto store = open_store();
        for (const auto& key : {k_decode, m_prompt, m_other}) publish(*store, sample_entry(key));
        if (!store->publish_image(as_bytes("an image that no entry names"))) throw std::runtime_error("no image");
    }
    [[nodiscard]] std::size_t functions() const { return run("ls --json").json()["functions"].size(); }

    cachefmt::FunctionKey m_prompt = k_decode, m_other = k_decode;
};

TEST_F(Clear, RemovesTheEntriesOfOneFunctionOrModel)
{
    EXPECT_THAT(run("clear --model tiny-llama --func prompt").out, HasSubstr("removed 1 entry"));
    EXPECT_EQ(functions(), 2U);
    EXPECT_EQ(run("clear --model other --json").json()["removed"]["entries"], 1);
    EXPECT_EQ(functions(), 1U);
    EXPECT_THAT(run("clear --func nothing").out, HasSubstr("removed 0 entries"));
    EXPECT_EQ(functions(), 1U);
}

TEST_F(Clear, RemovesEverythingOfAKind)
{
    const auto entry = sample_entry(k_decode);
    damage(path_of(entry));
    EXPECT_EQ(run("check --repair").status, 0);
    EXPECT_EQ(run("clear --kind quarantine --json").json()["removed"]["quarantined"], 1);
    EXPECT_EQ(run("ls --json").json()["variants"], 2);
    const auto removed = run("clear --kind all --json").json()["removed"];
    EXPECT_EQ(removed["entries"], 2);
    EXPECT_EQ(removed["images"], 1);
    EXPECT_EQ(functions(), 0U);
}

TEST_F(Clear, KeepsYoungImagesWhenOnlyImagesAreCleared)
{
    EXPECT_EQ(run("clear --kind images --json").json()["removed"]["images"], 0); // a writer publishes images first
    EXPECT_EQ(run("ls --json").json()["images"], 1);
    EXPECT_EQ(functions(), 3U);
}

TEST_F(Clear, RefusesAChoiceOfFunctionsForOtherKinds)
{
    EXPECT_EQ(run("clear --kind images --func decode").status, 2);
    EXPECT_EQ(run("clear --kind all --model tiny-llama").status, 2);
    EXPECT_EQ(functions(), 3U);
}

} // namespace
} // namespace warmgraph::test
