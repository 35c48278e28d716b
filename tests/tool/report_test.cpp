// Tests `warmgraph report`: the document, the page, and the page in a real browser.
#include <algorithm>

#include "command_fixture.hpp"
#include "lacking.hpp"

namespace warmgraph::test::report_test {
namespace {

using Json = nlohmann::json;

constexpr const char* k_hostile = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>";

std::size_t count_of(const std::string& text, const std::string& part)
{
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

class ReportTest : public CommandTest {
protected:
    /// An entry with four nodes: the first one, two side by side, and the last one.
    static cachefmt::Entry diamond(const cachefmt::FunctionKey& key, cachefmt::Guards guards)
    {
        cachefmt::Entry entry = sample_entry(key, std::move(guards));
        entry.graph.nodes = {entry.graph.nodes[0], cachefmt::EmptyNode{}, cachefmt::EmptyNode{}, cachefmt::EmptyNode{}};
        entry.graph.edges = {{0, 1, {}}, {0, 2, {}}, {1, 3, {}}, {2, 3, {}}};
        entry.header.info.node_count = 4;
        return entry;
    }

    /// A miss of a call whose type differs from that of the nearest entry.
    static store::Miss miss(const std::string& type, const std::string& time)
    {
        store::Miss miss;
        miss.id = time;
        miss.time = time;
        miss.host = "gpu-17";
        miss.process = 4711;
        miss.policy = "read_only";
        miss.reason = "3 variants on disk, the nearest differs";
        miss.end = store::MissEnd::thrown;
        miss.variants = 3;
        miss.nearest = sha256(as_bytes("nearest"));
        miss.differences = {{"config.dtype", "f32", type, "record a variant"}};
        miss.agree = 31;
        return miss;
    }

    /// Publishes for "decode" a graph, a graph that was `recompiled`, a damaged graph and two misses; for "prompt" a
    /// graph.
    void fill() const
    {
        auto store = open_store();
        auto guards = sample_guards();
        publish(*store, diamond(k_decode, guards));
        guards.facts[0].value = "f16";
        publish(*store, tombstone(k_decode, guards));
        guards.facts[0].value = "i8";
        const cachefmt::Entry damaged = sample_entry(k_decode, guards);
        publish(*store, damaged);
        damage(path_of(damaged));
        publish(*store, sample_entry(k_prompt));
        store->note_miss(k_decode, miss("bf16", "2026-11-22T10:11:12.001Z"), "");
        store->note_miss(k_decode, miss("f64", "2026-11-23T10:11:12.001Z"), "");
        store->add_usage(k_decode, {.hits = 9412,
                                    .misses = 3,
                                    .recordings = 2,
                                    .saved_ms = 1960,
                                    .cold = {{"look up", 0.25}, {"compile", 700}, {"try", 1540}},
                                    .warm = {{"look up", 0.5}, {"load", 4.5}}});
    }

    const cachefmt::FunctionKey k_prompt{"tiny-llama_static_clgraphcache_0123456789ab", "world1global_rank0", "prompt"};
};

class Report : public ReportTest {};

TEST_F(Report, HasWhatTheFolderHolds)
{
    fill();
    const CommandResult result = run(0, "report --json");
    EXPECT_FALSE(std::filesystem::exists(dir() / "warmgraph-report.html")) << "asked for JSON alone";
    const Json report = result.json(), decode = report["functions"].at(0);
    EXPECT_EQ(report["totals"]["functions"], 2);
    EXPECT_EQ(report["totals"]["variants"], 4);
    EXPECT_EQ(report["totals"]["recompiled"], 1);
    EXPECT_EQ(report["totals"]["damaged"], 1);
    EXPECT_EQ(report["totals"]["hits"], 9412);
    EXPECT_EQ(decode["model"], "tiny-llama");
    EXPECT_EQ(decode["function"], "decode");
    EXPECT_EQ(decode["variants"].size(), 3U);
    const Json& cold = decode["start"]["cold"];
    EXPECT_EQ(
        cold,
        Json::parse(R"([{"phase":"look up","ms":0.25},{"phase":"compile","ms":700.0},{"phase":"try","ms":1540.0}])"));
    EXPECT_EQ(decode["start"]["warm"].size(), 2U);
    std::uint64_t bytes = 0;
    for (const Json& variant : decode["variants"]) bytes += variant["bytes"].get<std::uint64_t>();
    EXPECT_EQ(decode["bytes"], bytes);
    EXPECT_EQ(report["functions"].at(1)["start"]["cold"], Json::array());
}

TEST_F(Report, SaysWhyTheLastCallMissed)
{
    fill();
    const Json report = run("report --json").json(), decode = report["functions"].at(0);
    ASSERT_EQ(decode["last_misses"].size(), 2U);
    const Json& miss = decode["last_misses"][0];
    EXPECT_EQ(miss["end"], "thrown");
    EXPECT_EQ(miss["policy"], "read_only");
    EXPECT_EQ(miss["agree"], 31);
    ASSERT_EQ(miss["mismatches"].size(), 1U);
    EXPECT_EQ(miss["mismatches"][0]["fact"], "config.dtype");
    EXPECT_EQ(miss["mismatches"][0]["now"], "f64") << "the newest first";
    EXPECT_EQ(decode["last_misses"][1]["mismatches"][0]["now"], "bf16");
    EXPECT_TRUE(decode["misses_problem"].is_null());
    EXPECT_THAT(report["functions"].at(1)["last_misses"], IsEmpty());
}

TEST_F(Report, SaysThatMissesCannotBeRead)
{
    fill();
    std::ofstream(cache() / k_decode.model_info / k_decode.rank / "decode" / "misses.jsonl") << "\nno miss\n";
    const Json report = run("report --json").json();
    EXPECT_THAT(report["functions"].at(0)["last_misses"], IsEmpty());
    EXPECT_THAT(report["functions"].at(0)["misses_problem"].get<std::string>(), HasSubstr("misses.jsonl"));
}

TEST_F(Report, HasAGraphOfEachEntryThatIsWhole)
{
    fill();
    std::map<std::string, Json> by_kind;
    const Json report = run("report --json").json();
    for (const Json& variant : report["functions"].at(0)["variants"])
        by_kind[variant["kind"].get<std::string>()] = variant;
    const Json& graph = by_kind.at("graph")["graph"];
    EXPECT_EQ(graph["edges"], 4);
    EXPECT_EQ(graph["drawing"]["boxes"].size(), 4U);
    EXPECT_EQ(graph["drawing"]["boxes"][3]["layer"], 2);
    EXPECT_EQ(graph["drawing"]["edges"].size(), 4U);
    EXPECT_EQ(graph["work"][0]["nodes"], 3);
    EXPECT_EQ(by_kind.at("graph")["memory"]["input"], 4);
    EXPECT_EQ(by_kind.at("graph")["signature"][0]["type"], "i32[1] align 256");
    EXPECT_EQ(by_kind.at("recompiled")["difference"][0], "node 0 (fill): size 4 against 8");
    EXPECT_TRUE(by_kind.at("recompiled")["graph"].is_null());
    EXPECT_THAT(by_kind.at("damaged")["error"].get<std::string>(), Not(IsEmpty()));
}

TEST_F(Report, OfNoFolderIsAPageThatSaysSo)
{
    const CommandResult result = run(0, "report");
    EXPECT_THAT(result.out, HasSubstr("warmgraph-report.html"));
    EXPECT_THAT(text_of(dir() / "warmgraph-report.html"), HasSubstr("\"functions\":[]"));
    EXPECT_FALSE(std::filesystem::exists(cache())) << "no subcommand makes a folder";
}

TEST_F(Report, WritesThePageWhereItIsAskedTo)
{
    fill();
    const CommandResult result = run(0, "report -o here.html --json");
    EXPECT_EQ(result.json()["totals"]["functions"], 2);
    EXPECT_THAT(text_of(dir() / "here.html"), HasSubstr("world1global_rank0"));
    const CommandResult nowhere = run(2, "report -o nowhere/here.html");
    EXPECT_THAT(nowhere.error, HasSubstr("cannot write 'nowhere/here.html': No such file or directory"));
    EXPECT_EQ(run("report -o ''").status, 2);
}

TEST_F(Report, IsWrittenThroughALinkAndToStandardOutput)
{
    std::ofstream(dir() / "page.html") << "old";
    std::filesystem::create_symlink("page.html", dir() / "link.html");
    EXPECT_EQ(run("report -o link.html").status, 0);
    EXPECT_TRUE(std::filesystem::is_symlink(dir() / "link.html"));
    EXPECT_THAT(run("report -o -").out, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("</html>")));
    EXPECT_THAT(run("report -o /dev/full").error, HasSubstr("cannot write '/dev/full': No space left on device"));
    EXPECT_NE(run("report -o - --json").status, 0);
}

/// Promise H19: in a folder that other users may write, they may make a link with the default name.
TEST_F(Report, DoesNotFollowALinkThatStandsAtItsDefaultName)
{
    std::ofstream(dir() / "precious") << "old";
    std::filesystem::create_symlink("precious", dir() / "warmgraph-report.html");
    const CommandResult planted = run(2, "report");
    EXPECT_THAT(planted.error, HasSubstr("a link is there already"));
    EXPECT_THAT(planted.error, HasSubstr("give -o a file"));
    EXPECT_EQ(text_of(dir() / "precious"), "old");
    EXPECT_EQ(run("report -o warmgraph-report.html").status, 0) << "named";
    EXPECT_TRUE(std::filesystem::is_symlink(dir() / "warmgraph-report.html"));
}

TEST_F(Report, KeepsHostileNamesOutOfTheMarkup)
{
    auto store = open_store();
    auto guards = sample_guards();
    guards.facts[0].value = k_hostile;
    cachefmt::Entry entry = sample_entry(k_decode, guards);
    entry.header.info.verification = k_hostile;
    publish(*store, entry);
    store->note_miss(k_decode, miss(k_hostile, k_hostile), "");
    store.reset();
    ASSERT_EQ(run("report -o hostile.html").status, 0);
    const std::string page = text_of(dir() / "hostile.html");
    EXPECT_EQ(count_of(page, "<script"), 2U) << "the document's and the page's own";
    EXPECT_EQ(count_of(page, "</script"), 2U);
    EXPECT_EQ(count_of(page, "<img"), 0U);
    EXPECT_THAT(page, HasSubstr("\\u003cimg src=x")) << "it is there, as text";
}

/// The browser is chromium as Debian packs it, which is an ordinary program. In Ubuntu it is a snap, which cannot read
/// the test's files. `./dev test` does not install it, because this would take 25 packages of 122 MB, and 414 MB on
/// disk, for three cases. If it is installed, the cases run.
constexpr const char* k_browser = "/usr/bin/chromium";

class ReportInABrowser : public ReportTest {
protected:
    void SetUp() override
    {
        if (!std::filesystem::exists(k_browser)) WARMGRAPH_SKIP_LACKING("a browser (Debian's package chromium)");
    }

    struct Shown {
        std::string dom, log;
    };
    [[nodiscard]] Shown show(const std::filesystem::path& page) const
    {
        const std::string folder = dir().string();
        const std::string line = "cd '" + folder + "' && HOME='" + folder + "' timeout 60 " + k_browser +
                                 " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
                                 " --disable-background-networking --disable-component-update --enable-logging=stderr"
                                 " --user-data-dir='" +
                                 folder + "/browser' --dump-dom 'file://" + page.string() +
                                 "' >dom.html 2>browser.log </dev/null";
        EXPECT_EQ(std::system(line.c_str()), 0) << text_of(dir() / "browser.log");
        return {text_of(dir() / "dom.html"), text_of(dir() / "browser.log")};
    }

    /// Expects that the page was drawn completely, without errors of scripts and without anything that the page's own
    /// policy refused.
    static void expect_drawn(const Shown& shown)
    {
        EXPECT_THAT(shown.dom, HasSubstr("data-rendered=\"yes\""));
        EXPECT_THAT(shown.dom, Not(HasSubstr("data-error")));
        EXPECT_THAT(shown.log, Not(HasSubstr("CONSOLE"))) << "an error's text, or a refusal's";
        const std::string body =
            shown.dom.substr(shown.dom.find("<main"), shown.dom.find("</main>") - shown.dom.find("<main"));
        for (const char* slip : {"[object ", "undefined", "NaN"}) EXPECT_THAT(body, Not(HasSubstr(slip)));
    }
};

TEST_F(ReportInABrowser, ShowsWhatTheDocumentSays)
{
    fill();
    const Json report = run("report --json -o page.html").json();
    const Shown shown = show(dir() / "page.html");
    expect_drawn(shown);
    std::size_t boxes = 0, edges = 0;
    for (const Json& function : report["functions"]) {
        EXPECT_THAT(shown.dom, HasSubstr("<code>" + function["function"].get<std::string>() + "</code>"));
        for (const Json& variant : function["variants"]) {
            EXPECT_THAT(shown.dom,
                        HasSubstr("<code>" + variant["variant"].get<std::string>().substr(0, 8) + "</code>"));
            if (variant["graph"].is_null()) continue;
            boxes += variant["graph"]["drawing"]["boxes"].size();
            edges += variant["graph"]["drawing"]["edges"].size();
        }
    }
    EXPECT_EQ(count_of(shown.dom, "<g class=\"box "), boxes);
    EXPECT_EQ(count_of(shown.dom, "<path class=\"edge\""), edges);
    for (const char* text :
         {"9 412", "1.96 s", "config.dtype", "bf16", "f64", "1 miss before it", "size 4 against 8", "140x sooner",
          "compile 700.0 ms", "700.3 ms + 1.54 s", "tiny-llama_static_clgraphcache_0123456789ab"})
        EXPECT_THAT(shown.dom, HasSubstr(text));
}

TEST_F(ReportInABrowser, ShowsHostileNamesAsText)
{
    auto store = open_store();
    auto guards = sample_guards();
    guards.facts[0].value = k_hostile;
    cachefmt::Entry entry = sample_entry(k_decode, guards);
    entry.graph.regions[0].name = "token"; // the region has the same name as the tensor
    entry.header.info.verification = k_hostile;
    entry.header.info.scalar_proofs = {k_hostile};
    entry.graph.events = {k_hostile};
    entry.graph.nodes.emplace_back(cachefmt::EventRecordNode{0});
    entry.header.info.node_count = 2;
    publish(*store, entry);
    store->note_miss(k_decode, miss(k_hostile, k_hostile), "");
    store.reset();
    ASSERT_EQ(run("report -o page.html").status, 0);
    const Shown shown = show(dir() / "page.html");
    expect_drawn(shown);
    EXPECT_THAT(shown.dom, HasSubstr("<title>warmgraph report</title>"));
    EXPECT_EQ(count_of(shown.dom, "<img"), 0U);
    EXPECT_GE(count_of(shown.dom, "&lt;/script&gt;&lt;script&gt;"), 5U)
        << "the miss's time and fact, verification, proof, node";
}

/// The two tests above depend on this: if a page has an error, the fixture sees it.
TEST_F(ReportInABrowser, AnErrorInAPageIsSeen)
{
    fill();
    ASSERT_EQ(run("report -o page.html").status, 0);
    std::string page = text_of(dir() / "page.html");
    const std::string tiles = "function tiles(totals) {";
    page.replace(page.find(tiles), tiles.size(), tiles + " totals.nothing.there();");
    std::ofstream(dir() / "broken.html") << page;
    const Shown shown = show(dir() / "broken.html");
    EXPECT_THAT(shown.dom, HasSubstr("data-error"));
    EXPECT_THAT(shown.log, HasSubstr("CONSOLE"));
    EXPECT_THAT(shown.dom, Not(HasSubstr("data-rendered")));
}

} // namespace
} // namespace warmgraph::test::report_test
