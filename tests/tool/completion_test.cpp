// Tests the completions and the manual page. They are made from the command's own table, and are tried in real shells
// and in man.
#include <sstream>

#include "command_fixture.hpp"
#include "lacking.hpp"

namespace warmgraph::test::completion_test {
namespace {

using ::testing::IsSupersetOf;

bool has_program(const std::string& name)
{
    return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

class Completion : public CommandTest {
protected:
    /// The words that bash offers as completions of the last word in `words`.
    std::vector<std::string> bash_offers(const std::vector<std::string>& words) const
    {
        std::ofstream script(dir() / "ask.sh");
        script << "source '" << (dir() / "completion.bash").string() << "'\nCOMP_WORDS=(" WARMGRAPH_COMMAND;
        for (std::size_t i = 1; i < words.size(); ++i) script << " '" << words[i] << "'";
        script << ")\nCOMP_CWORD=" << words.size() - 1 << "\n_warmgraph\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
        script.close();
        const std::string command = "cd '" + dir().string() + "' && WARMGRAPH_CACHE_DIR='" + cache().string() +
                                    "' bash ask.sh >offers.txt 2>errors.txt";
        EXPECT_EQ(std::system(command.c_str()), 0) << text_of(dir() / "errors.txt");
        EXPECT_THAT(text_of(dir() / "errors.txt"), IsEmpty());
        std::istringstream lines(text_of(dir() / "offers.txt"));
        std::vector<std::string> offers;
        for (std::string line; std::getline(lines, line);)
            if (!line.empty()) offers.push_back(line);
        return offers;
    }
    void make_bash_completion() const { std::ofstream(dir() / "completion.bash") << run("completion bash").out; }
};

TEST_F(Completion, OfBashOffersSubcommandsOptionsValuesAndFunctions)
{
    publish(*open_store(), sample_entry(k_decode));
    make_bash_completion();
    EXPECT_THAT(bash_offers({"warmgraph", "s"}), UnorderedElementsAre("show", "stats", "sign"));
    EXPECT_THAT(bash_offers({"warmgraph", "show", "--"}),
                IsSupersetOf({"--only", "--variant", "--dot", "--json", "--cache-dir", "--color", "--help"}));
    EXPECT_THAT(
        bash_offers({"warmgraph", "clear", "--kind", ""}),
        UnorderedElementsAre("entries", "images", "quarantine", "tuned", "compiled", "profiles", "torch", "all"));
    EXPECT_THAT(bash_offers({"warmgraph", "sign", "--kind", ""}), UnorderedElementsAre("hmac-sha256", "ed25519"));
    EXPECT_THAT(bash_offers({"warmgraph", "report", "-o", "completion.b"}), UnorderedElementsAre("completion.bash"));
    EXPECT_THAT(bash_offers({"warmgraph", "--json", "show", "tiny"}), UnorderedElementsAre("tiny-llama/decode"));
    EXPECT_THAT(bash_offers({"warmgraph", "ls", ""}), UnorderedElementsAre("tiny-llama", "tiny-llama/decode"));
    std::ofstream(dir() / "bundle.wgb");
    EXPECT_THAT(bash_offers({"warmgraph", "check", "bundle.w"}), UnorderedElementsAre("bundle.wgb"));
    EXPECT_THAT(bash_offers({"warmgraph", "bundle", "st"}), UnorderedElementsAre("strip"));
    EXPECT_THAT(bash_offers({"warmgraph", "bundle", "ls", "completion.b"}), UnorderedElementsAre("completion.bash"));
    EXPECT_THAT(bash_offers({"warmgraph", "--color", "n"}), UnorderedElementsAre("never"));
    EXPECT_THAT(bash_offers({"warmgraph", "--cache-dir", "nowhere", "show", "tiny"}), IsEmpty()) << "of that folder";
    EXPECT_THAT(bash_offers({"warmgraph", "--cache-dir", "nowhere", "do"}), UnorderedElementsAre("doctor"));
}

TEST_F(Completion, OffersNothingHidden)
{
    make_bash_completion();
    const auto offers = bash_offers({"warmgraph", ""});
    EXPECT_THAT(offers, Contains("--version"));
    for (const char* hidden : {"completion", "manual", "names"}) {
        EXPECT_THAT(offers, Not(Contains(hidden)));
        EXPECT_THAT(run("--help").out, Not(HasSubstr(std::string("  ") + hidden + " ")));
    }
}

TEST_F(Completion, OfZshIsAScriptThatZshTakes)
{
    const std::string script = run("completion zsh").out;
    EXPECT_THAT(script, HasSubstr("#compdef warmgraph"));
    for (const char* text : {"'show:", "--variant[", "entries images compiled tuned profiles torch quarantine all",
                             "_warmgraph_functions"})
        EXPECT_THAT(script, HasSubstr(text));
    if (!has_program("zsh")) WARMGRAPH_SKIP_LACKING("zsh");
    std::ofstream(dir() / "_warmgraph") << script;
    EXPECT_EQ(std::system(("zsh -n '" + (dir() / "_warmgraph").string() + "'").c_str()), 0);
}

TEST_F(Completion, OfAnotherShellIsNotThere) { EXPECT_EQ(run("completion fish").status, 2); }

class Manual : public CommandTest {};

TEST_F(Manual, HasTheHelpOfEverySubcommand)
{
    std::string manual = run("manual").out;
    for (std::size_t at = 0; (at = manual.find("\\-", at)) != std::string::npos;) manual.erase(at, 1);
    for (const char* verb : {"ls", "show", "explain", "check", "stats", "profile", "report", "clear", "prune", "sign",
                             "bundle", "doctor"}) {
        EXPECT_THAT(manual, HasSubstr(std::string(".SS ") + verb + "\n"));
        EXPECT_THAT(manual, HasSubstr(run(std::string(verb) + " --help").out));
    }
    for (const char* hidden : {"completion", ".SS manual", ".SS names"}) EXPECT_THAT(manual, Not(HasSubstr(hidden)));
}

TEST_F(Manual, IsAPageThatManTakesWithoutAWarning)
{
    if (!has_program("groff")) WARMGRAPH_SKIP_LACKING("groff");
    std::ofstream(dir() / "warmgraph.1") << run("manual").out;
    const std::string command =
        "cd '" + dir().string() + "' && groff -man -ww -Tascii -P-c warmgraph.1 >page.txt 2>errors.txt";
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_THAT(text_of(dir() / "errors.txt"), IsEmpty());
    EXPECT_THAT(text_of(dir() / "page.txt"),
                HasSubstr("warmgraph show tiny-llama/decode --only guards,nodes --variant 3f9a"));
}

} // namespace
} // namespace warmgraph::test::completion_test
