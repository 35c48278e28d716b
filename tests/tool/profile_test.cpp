// Tests `warmgraph profile`, and how the other subcommands handle profiles.
#include "command_fixture.hpp"
#include "sample_profile.hpp"
#include "warmgraph/profile/profile_library.hpp"

namespace warmgraph::test::profile_test {
namespace {

class ProfileCommand : public CommandTest {
protected:
    ProfileCommand()
    {
        const auto store = open_store();
        const profile::ProfileLibrary library(store->tier());
        profile::Profile other = profile::test::empty_profile();
        other.function = "decode";
        other.key = profile::key_of(other);
        profile::count(other.parts["one"], profile::test::prompt_of(1));
        for (const auto& each : {profile::test::sample_profile(), other})
            if (!library.merge(each)) throw std::runtime_error("no profile");
    }
    [[nodiscard]] std::filesystem::path file() const
    {
        return cache() / run("profile tiny/prompt --json").json()["profiles"][0]["file"].get<std::string>();
    }
};

TEST_F(ProfileCommand, ShowsSizesAndBuckets)
{
    const CommandResult result = run(0, "profile");
    EXPECT_THAT(result.out,
                HasSubstr("model  function  dimension  calls  sizes  least  most  padding  buckets (calls)"));
    EXPECT_THAT(result.out,
                HasSubstr("tiny   prompt    tokens[0]      5      2      5    17     50 %  16 (1), 32 (3)"));
    EXPECT_THAT(result.out, HasSubstr("2 shape profiles\nprofile/"));
}

TEST_F(ProfileCommand, GivesTheSameAsJson)
{
    const auto json = run("profile tiny/prompt --json").json();
    ASSERT_EQ(json["profiles"].size(), 1U);
    const auto& one = json["profiles"][0];
    EXPECT_EQ(one["model"], "tiny");
    EXPECT_EQ(one["function"], "prompt");
    EXPECT_EQ(one["writers"], 2);
    EXPECT_EQ(one["calls"], 5);
    EXPECT_EQ(one["shapes"], 3);
    EXPECT_EQ(one["problem"], nullptr);
    EXPECT_TRUE(std::filesystem::exists(file()));
    const auto& tokens = one["dimensions"][1];
    EXPECT_EQ(tokens["argument"], "tokens");
    EXPECT_EQ(tokens["varies"], true);
    EXPECT_EQ(tokens["sizes"][1]["size"], 17);
    EXPECT_EQ(tokens["sizes"][1]["calls"], 4);
    EXPECT_EQ(tokens["ran"][1]["size"], 32);
    EXPECT_GT(tokens["padding"], 0.4);
    EXPECT_EQ(one["dimensions"][0]["varies"], false);
    EXPECT_EQ(one["learnt"][0]["buckets"][1], 32);
    EXPECT_EQ(one["learnt"][0]["dimensions"][0], "tokens[0]");
}

TEST_F(ProfileCommand, ChoosesByName)
{
    EXPECT_EQ(run("profile tiny --json").json()["profiles"].size(), 2U);
    EXPECT_EQ(run("profile tiny/decode --json").json()["profiles"].size(), 1U);
    EXPECT_EQ(run("profile nothing").status, 1);
}

TEST_F(ProfileCommand, NamesWhatIsWrongWithAnEditedOne)
{
    const auto damaged = file();
    std::ofstream(damaged) << R"({"format": 1})";
    const CommandResult result = run(1, "profile");
    EXPECT_THAT(result.out, HasSubstr("'model_info' is missing"));
    EXPECT_THAT(run("profile --json").json()["profiles"].dump(), HasSubstr("'model_info' is missing"));
}

TEST_F(ProfileCommand, IsClearedAlone)
{
    EXPECT_EQ(run("clear --kind profiles --dry-run --json").json()["would_remove"]["profiles"], 2);
    const CommandResult result = run(0, "clear --kind profiles");
    EXPECT_THAT(result.out, HasSubstr("2 shape profiles"));
    EXPECT_EQ(run("profile --json").json()["profiles"].size(), 0U);
    EXPECT_EQ(run("clear --kind tuned").status, 0) << "the option takes it";
    EXPECT_EQ(run("check").status, 0);
}

} // namespace
} // namespace warmgraph::test::profile_test
