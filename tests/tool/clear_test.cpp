#include "command_fixture.hpp"

namespace warmgraph::test::clear_test {
namespace {

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
}

TEST_F(Clear, TakesAFunctionWithItsModelAndRank)
{
    for (const std::string& name : {std::string("other/decode"), m_prompt.model_info + "/prompt",
                                    std::string("tiny-llama/world1global_rank0/decode")}) {
        const CommandResult result = run(0, "clear --func " + name);
        EXPECT_THAT(result.out, HasSubstr("removed 1 entry")) << name;
    }
    EXPECT_EQ(functions(), 0U);
}

TEST_F(Clear, TakesAFunctionOfEveryModelWhereNoneIsNamed)
{
    EXPECT_EQ(run("clear --func decode --json").json()["removed"]["entries"], 2);
    EXPECT_EQ(functions(), 1U);
}

TEST_F(Clear, SaysWithOneThatNothingFits)
{
    const auto before = snapshot(cache());
    for (const char* names : {"--func nothing", "--func tiny-llama/nothing", "--func other/prompt", "--model nobody",
                              "--func tiny-llama/world2global_rank0/decode", "--model other --func prompt"}) {
        for (const char* more : {"", " --dry-run", " --json"}) {
            const CommandResult result = run(std::string("clear ") + names + more);
            EXPECT_EQ(result.status, 1) << names;
            EXPECT_THAT(result.error, HasSubstr("nothing was removed: no")) << names;
            EXPECT_THAT(result.error, HasSubstr("\n  " + m_prompt.model_info + "/world1global_rank0/prompt\n"));
        }
    }
    EXPECT_EQ(snapshot(cache()), before) << "nor the image that no entry names";
    EXPECT_EQ(run("clear --cache-dir nowhere --func decode").status, 1);
    EXPECT_THAT(run("clear --cache-dir nowhere --func decode").error, HasSubstr("no cache folder at"));
}

TEST_F(Clear, RefusesNamesThatAreNone)
{
    for (const char* name : {"/decode", "tiny-llama/", "a/b/c/d", "a//b"}) {
        const CommandResult result = run(std::string("clear --func ") + name);
        EXPECT_EQ(result.status, 2) << name;
        EXPECT_THAT(result.error, HasSubstr("give function, model/function or model/rank/function"));
    }
    EXPECT_EQ(run("clear --model other --func other/decode").status, 2);
    for (const char* empty : {"clear --func ''", "clear --model ''", "clear --func=", "clear --dry-run --model="}) {
        const CommandResult result = run(empty);
        EXPECT_EQ(result.status, 2) << empty << ": not everything is meant";
    }
    EXPECT_EQ(functions(), 3U);
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
    EXPECT_EQ(removed["image_bytes"], std::string_view("an image that no entry names").size());
    EXPECT_EQ(functions(), 0U);
    EXPECT_EQ(run("clear").status, 0) << "nothing is left, as was asked for";
}

TEST_F(Clear, KeepsYoungImagesWhenOnlyImagesAreCleared)
{
    EXPECT_EQ(run("clear --kind images --json").json()["removed"]["images"], 0); // writers publish images first
    EXPECT_EQ(run("ls --json").json()["images"], 1);
    EXPECT_EQ(functions(), 3U);
}

TEST_F(Clear, RefusesAChoiceOfFunctionsForOtherKinds)
{
    EXPECT_EQ(run("clear --kind images --func decode").status, 2);
    EXPECT_EQ(run("clear --kind all --model tiny-llama").status, 2);
    EXPECT_EQ(functions(), 3U);
}

TEST_F(Clear, SaysInADryRunWhatItWouldRemoveAndChangesNothing)
{
    damage(path_of(sample_entry(m_other)));
    EXPECT_EQ(run("check --repair").status, 0);
    const auto before = snapshot(cache());
    const auto time = std::filesystem::last_write_time(cache());
    const CommandResult text = run(0, "clear --kind all --dry-run --yes");
    EXPECT_THAT(text.out, HasSubstr("would remove 2 entries, 1 image, 1 quarantined file ("));
    const auto all = run("clear --kind all --dry-run --json").json();
    EXPECT_FALSE(all.contains("removed"));
    EXPECT_THAT(run("clear --func prompt --dry-run").out, HasSubstr("would remove 1 entry"));
    EXPECT_EQ(snapshot(cache()), before);
    EXPECT_EQ(std::filesystem::last_write_time(cache()), time) << "no probe either";
    EXPECT_EQ(run("clear --kind all --json").json()["removed"], all["would_remove"]);
}

TEST_F(Clear, AsksOnATerminalBeforeItRemovesEverything)
{
    for (const char* arguments : {"clear", "clear --kind all", "clear --json"}) {
        const CommandResult no = run_on_terminal(arguments, "n\n");
        EXPECT_EQ(no.status, 1) << no.out;
        EXPECT_THAT(no.out, HasSubstr("Remove 3 entries, 1 image, 0 quarantined files ("));
        EXPECT_THAT(no.out, HasSubstr("from " + cache().string() + "? [y/N]"));
        EXPECT_EQ(run_on_terminal(arguments, "\n").status, 1) << "no is the default";
    }
    EXPECT_EQ(functions(), 3U);
    const CommandResult yes = run_on_terminal("clear", "y\n");
    EXPECT_EQ(yes.status, 0);
    EXPECT_THAT(yes.out, HasSubstr("removed 3 entries"));
    EXPECT_EQ(functions(), 0U);
    EXPECT_THAT(run_on_terminal("clear", "\n").out, Not(HasSubstr("[y/N]"))) << "there is nothing to lose";
}

TEST_F(Clear, TakesTheAnswerThroughAPipe)
{
    for (const char* writer : {"echo n", "echo", "yes n", "(sleep 0.3; echo no)"})
        for (const char* arguments : {"clear", "clear --kind all --json"}) {
            const CommandResult no = run_behind(writer, arguments);
            EXPECT_EQ(no.status, 1) << writer << no.out;
            EXPECT_THAT(no.error, HasSubstr("[y/N]")) << writer;
        }
    EXPECT_EQ(run_behind("printf 'n\\nthe rest\\n'", "clear; cat").out, "the rest\n") << "who reads on has it";
    EXPECT_EQ(functions(), 3U);
    EXPECT_EQ(run_behind("echo y", "clear").status, 0);
    EXPECT_EQ(functions(), 0U);
}

TEST_F(Clear, AsksNobodyWhereNobodyIs)
{
    const CommandResult result = run_behind("true", "clear");
    EXPECT_EQ(result.status, 0) << result.error;
    EXPECT_EQ(functions(), 0U);
}

TEST_F(Clear, AsksNothingWhereItIsToldNotToOrLittleIsMeant)
{
    for (const char* arguments :
         {"clear --func tiny-llama/prompt", "clear --kind images", "clear --dry-run", "clear --yes"}) {
        const CommandResult result = run_on_terminal(arguments, "n\n");
        EXPECT_EQ(result.status, 0) << arguments;
        EXPECT_THAT(result.out, Not(HasSubstr("[y/N]"))) << arguments;
    }
    EXPECT_EQ(functions(), 0U);
}

class ClearElsewhere : public CommandTest {};

TEST_F(ClearElsewhere, RefusesAFolderThatIsNoCache)
{
    plant_foreign_files();
    const auto before = snapshot(cache());
    for (const char* arguments :
         {"clear", "clear --yes", "clear --func c", "clear --func tiny-llama/decode", "clear --kind all",
          "clear --kind quarantine", "clear --kind images", "clear --dry-run", "clear --kind all --dry-run"}) {
        const CommandResult result = run(arguments);
        EXPECT_EQ(result.status, 3) << arguments;
        EXPECT_THAT(result.out, IsEmpty()) << arguments;
        EXPECT_THAT(result.error, HasSubstr("has no CACHEDIR.TAG of warmgraph, but contains '")) << arguments;
    }
    EXPECT_EQ(snapshot(cache()), before);
}

TEST_F(ClearElsewhere, TakesAnEmptyFolderForNoCacheAndDoesNotMarkIt)
{
    std::filesystem::create_directory(cache());
    for (const char* arguments : {"ls", "check --repair", "clear --kind all", "stats"}) {
        const CommandResult result = run(arguments);
        EXPECT_EQ(result.status, 0) << arguments << result.error;
        EXPECT_THAT(result.out, HasSubstr("no cache in the empty folder at " + cache().string())) << arguments;
    }
    EXPECT_TRUE(std::filesystem::is_empty(cache()));
}

} // namespace
} // namespace warmgraph::test::clear_test
