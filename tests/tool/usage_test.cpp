#include <algorithm>

#include "command_fixture.hpp"

namespace warmgraph::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Usage : public CommandTest {};

TEST_F(Usage, PrintsItsVersionAndExitCodes)
{
    EXPECT_EQ(run("--version").status, 0);
    EXPECT_EQ(run("--version").out, "warmgraph " WARMGRAPH_VERSION "\n");
    const CommandResult help = run("--help");
    EXPECT_EQ(help.status, 0);
    for (const char* text : {"Exit status", "ls", "show", "explain", "check", "stats", "report", "clear", "doctor",
                             "--cache-dir", "--json"})
        EXPECT_THAT(help.out, HasSubstr(text));
}

TEST_F(Usage, RefusesWhatItDoesNotKnowWithTwo)
{
    for (const char* arguments : {"", "frobnicate", "ls --nonsense", "show", "explain", "show a/b c/d",
                                  "clear --kind everything", "ls --cache-dir"}) {
        const CommandResult result = run(arguments);
        EXPECT_EQ(result.status, 2) << arguments;
        EXPECT_THAT(result.out, IsEmpty()) << arguments;
        EXPECT_THAT(result.error, Not(IsEmpty())) << arguments;
    }
}

TEST_F(Usage, NamesTheWordThatIsNoneAndWhatThereIs)
{
    EXPECT_THAT(run("").error, HasSubstr("ls, show, explain, check, stats, report, clear, sign, verify or doctor"));
    EXPECT_THAT(run("frobnicate").error, HasSubstr("frobnicate"));
    for (const CommandResult& result : {run("clear --kind everything"), run("clear --help")}) {
        const std::string text = result.error + result.out;
        for (const char* kind : {"entries", "images", "quarantine", "all"}) EXPECT_THAT(text, HasSubstr(kind));
        EXPECT_TRUE(std::ranges::none_of(text, [](char c) { return c != '\n' && c >= 0 && c < ' '; })) << text;
    }
}

TEST_F(Usage, ReportsAFolderThatCannotBeUsedWithThree)
{
    std::ofstream(cache()) << "a file";
    for (const char* command : {"ls", "check", "stats", "show a/b", "explain a/b", "clear"}) {
        const CommandResult result = run(command);
        EXPECT_EQ(result.status, 3) << command;
        EXPECT_THAT(result.error, HasSubstr("is a file")) << command;
        const CommandResult json = run(std::string(command) + " --json");
        EXPECT_EQ(json.status, 3);
        EXPECT_THAT(json.json()["error"]["message"].get<std::string>(), HasSubstr("is a file"));
    }
}

TEST_F(Usage, TakesAnAbsentFolderForAnEmptyCacheAndMakesNone)
{
    for (const char* command : {"ls", "check", "check --repair", "stats", "clear --kind all"}) {
        const CommandResult result = run(command);
        EXPECT_EQ(result.status, 0) << command << result.error;
        EXPECT_THAT(result.out, HasSubstr("no cache folder at " + cache().string())) << command;
        EXPECT_TRUE(run(std::string(command) + " --json").json().is_object());
    }
    for (const char* command : {"show a/b", "explain a/b"}) {
        const CommandResult result = run(command);
        EXPECT_EQ(result.status, 1) << command;
        EXPECT_THAT(result.error, HasSubstr("no function 'a/b': no cache folder at " + cache().string())) << command;
    }
    EXPECT_FALSE(std::filesystem::exists(cache()));
}

TEST_F(Usage, TakesTheFolderFromTheOptionThenTheEnvironmentThenTheWorkingDirectory)
{
    EXPECT_EQ(run("ls --json").json()["cache_dir"], cache().string());
    EXPECT_EQ(run("--cache-dir elsewhere ls --json").json()["cache_dir"], (dir() / "elsewhere").string());
    EXPECT_EQ(run("ls --json", {{"WARMGRAPH_CACHE_DIR", ""}}).json()["cache_dir"],
              (dir() / ".warmgraph_cache").string());
}

} // namespace
} // namespace warmgraph::test
