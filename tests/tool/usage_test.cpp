#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/ranges.h>

#include "command_fixture.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph::test::usage_test {
namespace {

class Usage : public CommandTest {};

TEST_F(Usage, PrintsItsVersionAndExitCodes)
{
    EXPECT_EQ(run("--version").status, 0);
    EXPECT_EQ(run("--version").out, "warmgraph " WARMGRAPH_VERSION " (opencl, cuda)\n");
    const CommandResult help = run(0, "--help");
    for (const char* text : {"Exit status", "ls", "show", "explain", "check", "stats", "report", "clear", "prune",
                             "sign", "doctor", "--cache-dir", "--json"})
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
    EXPECT_THAT(run("").error, HasSubstr("ls, show, explain, check, stats, profile, report, clear, prune, sign, "
                                         "bundle, precompile, push, pull or doctor"));
    EXPECT_THAT(run("frobnicate").error, HasSubstr("frobnicate"));
    for (const CommandResult& result : {run("clear --kind everything"), run("clear --help")}) {
        const std::string text = result.error + result.out;
        for (const char* kind : {"entries", "images", "quarantine", "tuned", "profiles", "all"})
            EXPECT_THAT(text, HasSubstr(kind));
        EXPECT_TRUE(std::ranges::none_of(text, [](char c) { return c != '\n' && c >= 0 && c < ' '; })) << text;
    }
}

const std::vector<std::string> k_verbs{"ls",    "show", "explain", "check",  "stats",      "profile", "report", "clear",
                                       "prune", "sign", "doctor",  "bundle", "precompile", "push",    "pull"};

TEST_F(Usage, HelpOfEachSubcommandNamesAllItsOptionsAndAnExample)
{
    for (const std::string& verb : k_verbs) {
        const CommandResult help = run(verb + " --help");
        EXPECT_EQ(help.status, 0) << verb;
        for (const char* text : {"--json", "--cache-dir FOLDER", "--color auto|always|never", "Example"})
            EXPECT_THAT(help.out, HasSubstr(text)) << verb;
        EXPECT_THAT(help.out, HasSubstr("  warmgraph " + verb)) << "an example";
    }
    EXPECT_THAT(run("show --help").out, HasSubstr("--variant"));
    EXPECT_THAT(run("explain --help").out, HasSubstr("--all"));
}

TEST_F(Usage, ExamplesInTheHelpAreTakenByTheCommand)
{
    for (const std::string& verb : k_verbs) {
        std::istringstream lines(run(verb + " --help").out);
        for (std::string line; std::getline(lines, line);) {
            if (!line.starts_with("  warmgraph ")) continue;
            const std::string arguments = line.substr(std::string_view("  warmgraph ").size());
            const CommandResult result = run(arguments.substr(0, arguments.find(" |")));
            EXPECT_NE(result.status, 2) << line << '\n' << result.error;
        }
    }
}

/// The words that a subcommand's help lists for --kind.
std::string kinds_in(const std::string& help)
{
    std::smatch found;
    return std::regex_search(help, found, std::regex(R"(--kind ([a-z0-9-]+[|][a-z0-9|-]+))")) ? found[1].str()
                                                                                              : std::string();
}

TEST_F(Usage, EveryOptionThatTakesAKindTakesTheTablesWords)
{
    const std::map<std::string, std::pair<store::KindUse, std::vector<std::string>>> expected{
        {"explain", {store::KindUse::explained, {}}},
        {"clear", {store::KindUse::cleared, {"quarantine", "all"}}},
        {"prune", {store::KindUse::budgeted, {}}},
        {"bundle", {store::KindUse::bundled, {}}}};
    std::set<std::string> seen;
    for (const std::string& verb : k_verbs) {
        const std::string kinds = kinds_in(run(verb + " --help").out);
        if (kinds.empty() || verb == "sign") continue; // for `sign`, --kind is the kind of a key
        ASSERT_TRUE(expected.contains(verb)) << verb << " takes a kind that is compared with nothing";
        seen.insert(verb);
        const auto& [use, others] = expected.at(verb);
        std::vector<std::string> words = store::words_for(use);
        words.insert(words.end(), others.begin(), others.end());
        EXPECT_EQ(kinds, fmt::format("{}", fmt::join(words, "|"))) << verb;
        for (const store::ArtifactKind kind : store::kinds_for(use))
            for (const std::string_view old : store::row_of(kind).old_words) {
                if (old.empty()) continue;
                const CommandResult refused =
                    run(fmt::format("{} {} --kind {}", verb, verb == "bundle" ? "create x.wgb" : "", old));
                EXPECT_EQ(refused.status, 2) << verb << ' ' << old;
                EXPECT_THAT(refused.error, HasSubstr(fmt::format("'{}', which is called '{}'", old, to_string(kind))));
            }
    }
    EXPECT_EQ(seen.size(), expected.size());
}

TEST_F(Usage, SaysWhatWasProbablyMeant)
{
    EXPECT_THAT(run("lss").error, HasSubstr("there is no subcommand 'lss'; did you mean 'ls'?"));
    EXPECT_THAT(run("exlpain a/b").error, HasSubstr("did you mean 'explain'?"));
    EXPECT_THAT(run("doc").error, HasSubstr("did you mean 'doctor'?"));
    EXPECT_THAT(run("ls --jsno").error, HasSubstr("warmgraph ls: there is no option '--jsno'; did you mean '--json'?"));
    EXPECT_THAT(run("show --vairant 3f a/b").error, HasSubstr("did you mean '--variant'?"));
    EXPECT_THAT(run("clear --kind entires").error, HasSubstr("did you mean 'entries'?"));
    EXPECT_THAT(run("sign --new-key k --id k --kind ed25518").error, HasSubstr("did you mean 'ed25519'?"));
    EXPECT_THAT(run("show a/b --only nods").error, HasSubstr("did you mean 'nodes'?"));
    EXPECT_THAT(run("frobnicate").error, Not(HasSubstr("did you mean"))) << "nothing is near";
    for (const char* gone : {"verify --accept-file k", "bundle verify cache.wgb"}) {
        EXPECT_EQ(run(gone).status, 2);
        EXPECT_THAT(run(gone).error,
                    HasSubstr("`warmgraph check` verifies the cache folder and, by their files, bundles"));
    }
    EXPECT_THAT(run("ls a b").error, HasSubstr("'b' is one argument too many"));
    EXPECT_THAT(run("'\x1b[31m'").error, Not(HasSubstr("\x1b")));
}

TEST_F(Usage, KeepsEscapeSequencesOfFolderNamesOffTheTerminal)
{
    const std::string name = "esc\x1b[31m\u202ered";
    ASSERT_TRUE(store::LocalStore::open(dir() / name).has_value());
    std::filesystem::create_directories(dir() / ("empty" + name));
    for (const std::string& folder : {name, "empty" + name, "no" + name})
        for (const char* verb :
             {"ls", "check", "stats", "prune", "clear --dry-run", "show a/b", "doctor", "ls --json"}) {
            const CommandResult result = run(std::string(verb) + " --cache-dir '" + folder + "'");
            EXPECT_THAT(result.out + result.error, Not(HasSubstr("\x1b"))) << verb << " of " << folder;
            EXPECT_THAT(result.out + result.error, Not(HasSubstr("\u202e"))) << verb << " of " << folder;
        }
}

TEST_F(Usage, PaintsWhereItIsToldTo)
{
    publish(*open_store(), sample_entry(k_decode));
    for (const char* verb : {"ls", "show tiny-llama/decode", "stats"}) {
        EXPECT_THAT(run(std::string(verb) + " --color always").out, HasSubstr("\x1b[")) << verb;
        EXPECT_THAT(run(verb).out, Not(HasSubstr("\x1b["))) << "no terminal: " << verb;
        EXPECT_THAT(run_on_terminal(verb, "").out, HasSubstr("\x1b[")) << verb;
        EXPECT_THAT(run_on_terminal(std::string(verb) + " --color never", "").out, Not(HasSubstr("\x1b["))) << verb;
        for (const std::map<std::string, std::string>& plain : std::vector<std::map<std::string, std::string>>{
                 {}, {{"TERM", ""}}, {{"TERM", "dumb"}}, {{"TERM", "xterm"}, {"NO_COLOR", "1"}}})
            EXPECT_THAT(run_on_terminal(verb, "", plain).out, Not(HasSubstr("\x1b["))) << verb;
    }
}

TEST_F(Usage, ReportsAFolderThatCannotBeUsedWithThree)
{
    std::ofstream(cache()) << "a file";
    for (const char* command : {"ls", "check", "stats", "show a/b", "explain a/b", "clear"}) {
        const CommandResult result = run(command);
        EXPECT_EQ(result.status, 3) << command;
        EXPECT_THAT(result.error, HasSubstr("is a file")) << command;
        const CommandResult json = run(3, std::string(command) + " --json");
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

TEST_F(Usage, SaysThatItsOutputWasLost)
{
    open_store();
    for (const char* command :
         {"ls", "ls --json", "doctor", "stats --prometheus", "report -o -", "--help", "--version"}) {
        const CommandResult result = run(command, {}, "/dev/full");
        EXPECT_EQ(result.status, 3) << command;
        EXPECT_THAT(result.error, AnyOf(HasSubstr("the output could not be written"),
                                        HasSubstr("cannot write 'standard output': No space left on device")))
            << command;
    }
}

TEST_F(Usage, TakesTheFolderFromTheOptionThenTheEnvironmentThenTheWorkingDirectory)
{
    EXPECT_EQ(run("ls --json").json()["cache_dir"], cache().string());
    EXPECT_EQ(run("--cache-dir elsewhere ls --json").json()["cache_dir"], (dir() / "elsewhere").string());
    EXPECT_EQ(run("ls --json", {{"WARMGRAPH_CACHE_DIR", ""}}).json()["cache_dir"],
              (dir() / ".warmgraph_cache").string());
}

} // namespace
} // namespace warmgraph::test::usage_test
