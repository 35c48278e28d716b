// Texts and misses show the facts of a list as single facts.

#include "matchers.hpp"
#include "sample_entry.hpp"
#include "warmgraph/cachefmt/fact_lists.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt::fact_lists_test {
namespace {

TEST(FactLists, AListStandsForTheFactsOfItsLines)
{
    const std::vector<Fact> facts{
        {"config.b", "plain"}, {"config.model *", "model.a\t1\nmodel.c.d\tx\ty"}, {"driver", "5"}};
    EXPECT_TRUE(has_lists(facts));
    EXPECT_THAT(each_fact(facts), ElementsAre(Fact{"config.b", "plain"}, Fact{"config.model.a", "1"},
                                              Fact{"config.model.c.d", "x\ty"}, Fact{"driver", "5"}));
    EXPECT_EQ(facts_in(facts[0]), 1U);
    EXPECT_EQ(facts_in(facts[1]), 2U);
}

TEST(FactLists, TheLastOfOneNameCountsAndARoleIsTheLists)
{
    const std::vector<Fact> facts{{"config.a", "1"}, {"config.x *", "a\t2\nb\t3", Role::advisory}};
    EXPECT_THAT(each_fact(facts),
                ElementsAre(Fact{"config.a", "2", Role::advisory}, Fact{"config.b", "3", Role::advisory}));
}

TEST(FactLists, WhatIsNoListStaysAsItIs)
{
    for (const char* text : {"", "no tab", "a\t1\nno tab", "a\t1\n", "\n"}) {
        const std::vector<Fact> facts{{"config.z *", text}, {"config.a", "x\ty"}};
        EXPECT_FALSE(has_lists(facts)) << text;
        EXPECT_EQ(each_fact(facts), facts) << text;
        EXPECT_EQ(facts_in(facts[0]), 1U) << text;
    }
}

TEST(FactLists, APersonReadsTheFactsAndNoList)
{
    Entry entry = test::sample_entry();
    entry.header.guards.facts.push_back({"config.model *", "model.scale\t2.5\nmodel.depth\t16"});
    const std::string text = to_readable(entry);
    EXPECT_THAT(text, HasSubstr("config.model.scale"));
    EXPECT_THAT(text, Not(HasSubstr("config.model *")));
    const std::string json = to_json(entry);
    EXPECT_THAT(json, HasSubstr("\"config.model.depth\""));
    EXPECT_THAT(json, Not(HasSubstr("config.model *")));
}

} // namespace
} // namespace warmgraph::cachefmt::fact_lists_test
