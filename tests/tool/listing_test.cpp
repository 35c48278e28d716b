#include "command_fixture.hpp"

namespace warmgraph::test::listing_test {
namespace {

using ::testing::MatchesRegex;

class Listing : public CommandTest {};

TEST_F(Listing, OfAnEmptyCacheIsAFooter)
{
    open_store();
    EXPECT_THAT(run("ls").out, HasSubstr("0 functions, 0 variants (0 B), 0 images (0 B)"));
    EXPECT_THAT(run("ls --json").json()["functions"], IsEmpty());
}

TEST_F(Listing, ShowsEachFunctionWithItsVariantsAndHits)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode));
    auto guards = sample_guards();
    guards.facts[0].value = "f16";
    publish(*store, tombstone(k_decode, guards));
    store->add_usage(k_decode, {.hits = 9412, .misses = 3, .saved_ms = 1960});
    store.reset();

    const CommandResult text = run(0, "ls");
    EXPECT_THAT(text.out, HasSubstr("model       rank                function  variants"));
    EXPECT_THAT(text.out, HasSubstr("tiny-llama  world1global_rank0  decode    2 (1 recompiled)"));
    EXPECT_THAT(text.out, HasSubstr("9 412"));
    EXPECT_THAT(text.out, HasSubstr("1 function, 2 variants (2.1 KiB), 0 images (0 B)"));
    EXPECT_THAT(text.out, Not(HasSubstr("\x1b[")));

    const auto function = run("ls --json").json()["functions"].at(0);
    EXPECT_EQ(function["model"], "tiny-llama");
    EXPECT_EQ(function["variants"], 2);
    EXPECT_EQ(function["recompiled"], 1);
    EXPECT_EQ(function["hits"], 9412);
}

TEST_F(Listing, CountsDamagedEntriesWithoutTouchingThem)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    std::ofstream(path_of(entry), std::ios::binary | std::ios::trunc) << "short";
    EXPECT_THAT(run("ls").out, HasSubstr("1 (1 damaged)"));
    EXPECT_TRUE(std::filesystem::exists(path_of(entry)));
}

TEST_F(Listing, StatsGivesRatesAndTotals)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode));
    store->add_usage(k_decode, {.hits = 3, .misses = 1, .recordings = 1, .saved_ms = 1960});
    store.reset();
    const CommandResult text = run(0, "stats");
    EXPECT_THAT(text.out, HasSubstr("75 %"));
    EXPECT_THAT(text.out, HasSubstr("3 hits, 1 miss, 1.96 s saved"));
    EXPECT_EQ(run("stats --json").json()["total"]["hits"], 3);
}

TEST_F(Listing, BeginsWithTheEnvironmentKey)
{
    publish(*open_store(), sample_entry(k_decode, guards_of_machine("device.architecture", "nowhere")));
    const CommandResult text = run(0, "ls");
    EXPECT_THAT(text.out, MatchesRegex("environment key [0-9a-f]{12} recorded, [0-9a-f]{12} here: nothing fits "
                                       "\\(1 entry\\): device.architecture nowhere recorded, [^\n]+ here\nmodel "
                                       "(.|\n)*"));
    const auto environments = run("ls --json").json()["environments"];
    ASSERT_EQ(environments.size(), 1U);
    EXPECT_EQ(environments[0]["fit"], "differs");
    EXPECT_EQ(environments[0]["entries"], 1);
    EXPECT_EQ(environments[0]["fields"][0]["fact"], "device.architecture");
    EXPECT_NE(environments[0]["key"], environments[0]["here"]);
}

TEST_F(Listing, SaysThatAnEnvironmentFitsAndThatANewerDriverIsNoOther)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards_of_machine("backend", "opencl")));
    EXPECT_THAT(run("ls").out, MatchesRegex("environment key [0-9a-f]{12} recorded, [0-9a-f]{12} here: it fits "
                                            "\\(1 entry\\)\n(.|\n)*"));
    auto prompt = k_decode;
    prompt.function = "prompt";
    publish(*store, sample_entry(prompt, guards_of_machine("driver.version", "0.1")));
    EXPECT_THAT(run("ls tiny-llama/prompt").out,
                HasSubstr("here: it fits if a newer driver is accepted (1 entry): driver.version 0.1 recorded"));
    EXPECT_EQ(run("ls tiny-llama/prompt --json").json()["environments"][0]["fit"], "newer");
    EXPECT_THAT(run("ls").out, HasSubstr("here: 1 of 2 entries fit, 1 if a newer driver is accepted\n"));
}

TEST_F(Listing, SaysWhichEntriesAreOfOtherMachines)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards_of_machine("backend", "opencl")));
    publish(*store, sample_entry(k_decode, guards_of_machine("device.architecture", "nowhere")));
    auto cuda = guards_of_machine("device.units", "132");
    cuda.tensors[0].device = "cuda:0";
    publish(*store, sample_entry(k_decode, cuda));
    EXPECT_THAT(run("ls").out, HasSubstr("here: 1 of 3 entries fit, 1 of other machines differ in device.architecture, "
                                         "1 need a device that cannot be opened here\n"));
    const auto environments = run("ls --json").json()["environments"];
    ASSERT_EQ(environments.size(), 3U);
    EXPECT_TRUE(environments[0]["here"].is_null() && environments[0]["fit"].is_null()) << environments[0];
}

TEST_F(Listing, TakesAModelOrAFunction)
{
    auto store = open_store();
    auto prompt = k_decode, other = k_decode;
    prompt.function = "prompt";
    other.model_info = "other_static_clgraphcache_0123456789ab";
    for (const auto& key : {k_decode, prompt, other}) publish(*store, sample_entry(key));
    store.reset();
    EXPECT_EQ(run("ls tiny-llama --json").json()["functions"].size(), 2U);
    EXPECT_EQ(run("ls tiny-llama/prompt --json").json()["functions"].at(0)["function"], "prompt");
    EXPECT_EQ(run("stats other --json").json()["functions"].size(), 1U);
    EXPECT_EQ(run("stats tiny-llama/world1global_rank0/decode --json").json()["functions"].size(), 1U);
    EXPECT_FALSE(run("ls tiny-llama --json").json().contains("images")) << "they are the whole folder's";
    for (const char* verb : {"ls", "stats", "check"}) {
        const CommandResult near = run(std::string(verb) + " tiny-lama");
        EXPECT_EQ(near.status, 1) << verb;
        EXPECT_THAT(near.error, HasSubstr("no model 'tiny-lama' in the cache; did you mean 'tiny-llama'?")) << verb;
        EXPECT_THAT(run(std::string(verb) + " tiny-llama/promt").error, HasSubstr("did you mean 'tiny-llama/prompt'?"));
        EXPECT_EQ(run(std::string(verb) + " a/b/c/d").status, 2) << verb;
        EXPECT_EQ(run(std::string(verb) + " ''").status, 2) << verb;
    }
}

TEST_F(Listing, CheckOfAFunctionReportsItsOwnDamage)
{
    auto store = open_store();
    auto prompt = k_decode;
    prompt.function = "prompt";
    publish(*store, sample_entry(k_decode));
    publish(*store, sample_entry(prompt));
    damage(path_of(sample_entry(prompt)));
    EXPECT_EQ(run("check tiny-llama/decode").status, 0);
    EXPECT_EQ(run("check tiny-llama/prompt").status, 1);
    EXPECT_EQ(run("check tiny-llama --json").json()["damage"].size(), 1U);
    EXPECT_EQ(run("check tiny-llama --repair").status, 2) << "it mends the whole folder";
}

class Show : public CommandTest {};

TEST_F(Show, TakesSectionsAndAVariant)
{
    auto store = open_store();
    const auto first = sample_entry(k_decode);
    auto guards = sample_guards();
    guards.facts[0].value = "f16";
    const auto second = sample_entry(k_decode, guards);
    publish(*store, first);
    publish(*store, second);
    const std::string digits = to_hex(second.header.key.guards_digest).substr(0, 6);
    const CommandResult one = run(0, "show tiny-llama/decode --only guards,nodes --variant " + digits);
    EXPECT_THAT(one.out, HasSubstr("f16"));
    EXPECT_THAT(one.out, HasSubstr("nodes: 1, 0 edges"));
    for (const char* other : {"f32  ", "bindings:", "created"}) EXPECT_THAT(one.out, Not(HasSubstr(other)));
    EXPECT_EQ(run("show tiny-llama/decode --json --variant " + digits).json()["entries"].size(), 1U);
    const auto json = run("show tiny-llama/decode --json --only guards").json()["entries"];
    EXPECT_EQ(json.size(), 2U);
    EXPECT_FALSE(json[0].contains("graph"));
    EXPECT_EQ(json[0]["guards"]["values"][0]["value"], 2) << "a number";
    const CommandResult none = run(1, "show tiny-llama/decode --variant 000000");
    EXPECT_THAT(none.error, HasSubstr(to_hex(first.header.key.guards_digest))) << "what there is";
    EXPECT_EQ(run("show tiny-llama/decode --variant xyz").status, 2);
}

TEST_F(Show, PrintsAnEntryAsTextJsonAndDrawing)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    for (const std::string& target :
         {std::string("tiny-llama/decode"), std::string("tiny-llama/world1global_rank0/decode"),
          k_decode.model_info + "/decode", path_of(entry).string()}) {
        const CommandResult text = run(0, "show " + target);
        EXPECT_THAT(text.out, HasSubstr("config.dtype"));
        EXPECT_THAT(text.out, HasSubstr("token"));
    }
    EXPECT_THAT(run("show tiny-llama/decode --dot").out, HasSubstr("digraph"));
    const auto json = run("show tiny-llama/decode --json").json();
    EXPECT_EQ(json["entries"].size(), 1U);
    EXPECT_EQ(json["entries"][0]["path"], path_of(entry).string());
    EXPECT_THAT(run("show tiny-llama/decode --dot --json").json()["entries"][0]["dot"].get<std::string>(),
                HasSubstr("digraph"));
}

TEST_F(Show, PrintsATombstoneWithItsDifference)
{
    auto store = open_store();
    publish(*store, tombstone(k_decode));
    const CommandResult text = run(0, "show tiny-llama/decode");
    EXPECT_THAT(text.out, HasSubstr("recompiled"));
    EXPECT_THAT(text.out, HasSubstr("size 4 against 8"));
}

TEST_F(Show, ListsWhatThereIsForAnUnknownName)
{
    auto store = open_store();
    EXPECT_THAT(run("show a/b").error, HasSubstr("no function 'a/b' in the cache, which is empty"));
    publish(*store, sample_entry(k_decode));
    for (const char* target : {"a/b", "tiny/decode", "tiny-llama/prompt", "tiny-llama/world2global_rank0/decode"}) {
        const CommandResult result = run(std::string("show ") + target);
        EXPECT_EQ(result.status, 1) << target;
        EXPECT_THAT(result.error, HasSubstr(k_decode.model_info + "/world1global_rank0/decode")) << target;
    }
    for (const char* target : {"decode", "/decode", "a/b/c/d", "''"})
        EXPECT_EQ(run(std::string("show ") + target).status, 2) << target;
}

TEST_F(Show, ListsTheCandidatesOfAnAmbiguousName)
{
    auto store = open_store();
    auto other = k_decode;
    other.rank = "world2global_rank1";
    publish(*store, sample_entry(k_decode));
    publish(*store, sample_entry(other));
    const CommandResult result = run(2, "show tiny-llama/decode");
    EXPECT_THAT(result.error, HasSubstr("names 2 functions"));
    EXPECT_THAT(result.error, HasSubstr("\n  " + k_decode.model_info + "/world2global_rank1/decode\n"));
    EXPECT_EQ(run("show tiny-llama/world2global_rank1/decode").status, 0);
}

TEST_F(Show, RefusesDamagedAndMisplacedFilesAndLeavesThemThere)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    const auto moved = dir() / "a" / "b" / "c" / path_of(entry).filename();
    std::filesystem::create_directories(moved.parent_path());
    std::filesystem::copy_file(path_of(entry), moved);
    EXPECT_EQ(run("show " + moved.string()).status, 1);
    damage(path_of(entry));
    for (const std::string& target : {std::string("tiny-llama/decode"), path_of(entry).string()}) {
        const CommandResult result = run(1, "show " + target);
        EXPECT_THAT(result.out, IsEmpty());
        EXPECT_THAT(result.error, HasSubstr(path_of(entry).filename().string()));
    }
    EXPECT_TRUE(run("show tiny-llama/decode --json").json().contains("error"));
    EXPECT_TRUE(std::filesystem::exists(path_of(entry)));
    EXPECT_EQ(run("show nowhere.wg").status, 2);
    EXPECT_EQ(run("show x/y/z/" + std::string(64, 'a') + ".wg").status, 1);
}

TEST_F(Show, KeepsEscapeSequencesOffTheTerminal)
{
    auto store = open_store();
    auto guards = sample_guards();
    guards.facts[0].value = "\x1b[31mred\u202e";
    publish(*store, sample_entry(k_decode, guards));
    for (const char* form : {"", " --json"}) {
        const CommandResult result = run(std::string("show tiny-llama/decode") + form);
        EXPECT_THAT(result.out, Not(HasSubstr("\x1b"))) << form;
        EXPECT_THAT(result.out, Not(HasSubstr("\u202e"))) << form;
    }
    const auto json = run("show tiny-llama/decode --json").json();
    EXPECT_EQ(json["entries"][0]["guards"]["facts"][0]["value"], guards.facts[0].value) << "escaped, and not changed";
}

} // namespace
} // namespace warmgraph::test::listing_test
