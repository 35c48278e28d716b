// Checks the output of `stats --prometheus` against the grammar of the text format, version 0.0.4.
#include <regex>
#include <set>
#include <sstream>

#include "command_fixture.hpp"

namespace warmgraph::test::prometheus_test {
namespace {

struct Exposition {
    std::set<std::string> families; ///< names of the families that have lines HELP and TYPE
    std::vector<std::string> samples;
};

/// Reads the text line by line, as a scraper does. Expects HELP, then TYPE, then the samples of the family, with each
/// series only once.
Exposition read_exposition(const std::string& text)
{
    static const std::regex k_help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\\\n]|\\\\|\\n)+)");
    static const std::regex k_type(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge))");
    static const std::regex k_sample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\\\|\\"|\\n)*"(,[a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\\\|\\"|\\n)*")*\})? ([0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?))re");
    Exposition exposition;
    std::set<std::string> series;
    std::string helped, family;
    EXPECT_TRUE(text.ends_with('\n'));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (std::regex_match(line, match, k_help)) {
            helped = match.str(1);
        } else if (std::regex_match(line, match, k_type)) {
            family = match.str(1);
            EXPECT_EQ(helped, family);
            EXPECT_TRUE(exposition.families.insert(family).second) << family << " comes twice";
            EXPECT_EQ(family.ends_with("_total"), match.str(2) == "counter") << family;
        } else if (std::regex_match(line, match, k_sample)) {
            EXPECT_EQ(match.str(1), family) << "outside its family";
            EXPECT_TRUE(series.insert(match.str(1) + match.str(2)).second) << line << " comes twice";
            exposition.samples.push_back(line);
        } else {
            ADD_FAILURE() << "no line of the format: " << line;
        }
    }
    return exposition;
}

class Prometheus : public CommandTest {};

TEST_F(Prometheus, GivesEachFamilyWithHelpTypeAndSamples)
{
    auto store = open_store();
    auto other = k_decode;
    other.rank = "world2global_rank1";
    publish(*store, sample_entry(k_decode));
    publish(*store, sample_entry(other));
    store::FunctionUsage usage;
    usage.hits = 3;
    usage.saved_ms = 1960.5;
    usage.events = store::one_event(store::EventKind::hit, "restored", 4096);
    usage.events.add(store::EventKind::miss, "driver.version", {2, 0});
    store->add_usage(k_decode, usage);
    store.reset();
    const auto exposition = read_exposition(run("stats --prometheus").out);
    const std::string labels =
        R"(model="tiny-llama",model_info=")" + k_decode.model_info + R"(",rank="world1global_rank0",function="decode")";
    for (const std::string& line :
         {"warmgraph_hits_total{" + labels + "} 3", "warmgraph_saved_seconds_total{" + labels + "} 1.9605",
          "warmgraph_events_total{" + labels + R"(,kind="miss",reason="driver.version"} 2)",
          "warmgraph_event_bytes_total{" + labels + R"(,kind="hit",reason="restored"} 4096)",
          "warmgraph_variants{" + labels + "} 1", std::string("warmgraph_images 0")})
        EXPECT_THAT(exposition.samples, Contains(line));
    EXPECT_EQ(exposition.families.size(), 17U);
    EXPECT_EQ(read_exposition(run("stats --prometheus tiny-llama/world2global_rank1/decode").out).samples.size(), 34U);
}

TEST_F(Prometheus, IsValidForACacheWithoutFunctions)
{
    EXPECT_EQ(read_exposition(run("stats --prometheus").out).samples.size(), 2U);
    open_store();
    EXPECT_EQ(read_exposition(run("stats --prometheus").out).samples.size(), 27U) << "two of images, five of each kind";
    EXPECT_EQ(run("stats --prometheus --json").status, 2);
}

TEST_F(Prometheus, StatsNamesKindsAndReasonsToPeopleAndPrograms)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode));
    store::FunctionUsage usage;
    usage.events = store::one_event(store::EventKind::miss, "driver.version");
    usage.events.add(store::EventKind::recorded, "published", {1, 41 * 1024});
    store->add_usage(k_decode, usage);
    store.reset();
    const CommandResult text = run("stats");
    EXPECT_THAT(text.out, HasSubstr("what      reason          count   bytes"));
    EXPECT_THAT(text.out, HasSubstr("miss      driver.version      1       -"));
    EXPECT_THAT(text.out, HasSubstr("recorded  published           1  41 KiB"));
    const auto events = run("stats --json").json()["total"]["events"];
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[1],
              (nlohmann::json{{"kind", "recorded"}, {"reason", "published"}, {"count", 1}, {"bytes", 41984}}));
}

} // namespace
} // namespace warmgraph::test::prometheus_test
