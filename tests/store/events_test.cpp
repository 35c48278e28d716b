// Events are counted by kind and reason, and summed across stores. If a reason is not a word, or if there are too many
// reasons, it counts as "other".
#include "store_fixture.hpp"

namespace warmgraph::test::events_test {
namespace {

using store::EventKind;
using store::Events;
using store::one_event;
using store::Tally;
using Key = std::pair<EventKind, std::string>;

class EventsOfAFunction : public StoreTest {};

store::FunctionUsage usage_with(Events events)
{
    store::FunctionUsage usage;
    usage.events = std::move(events);
    return usage;
}

TEST_F(EventsOfAFunction, AddUpAcrossStores)
{
    open()->add_usage(k_decode, usage_with(one_event(EventKind::miss, "driver.version")));
    open()->add_usage(k_decode, usage_with(one_event(EventKind::miss, "driver.version")));
    open()->add_usage(k_decode, usage_with(one_event(EventKind::hit, "restored", 4096)));
    const auto events = open()->usage(k_decode).events.all();
    EXPECT_EQ(events.size(), 2U);
    EXPECT_EQ(events.at(Key{EventKind::miss, "driver.version"}), (Tally{2, 0}));
    EXPECT_EQ(events.at(Key{EventKind::hit, "restored"}), (Tally{1, 4096}));
}

TEST_F(EventsOfAFunction, TakeWordsOnlyAndNotTooMany)
{
    Events events;
    for (const std::string& reason : {std::string("two words"), std::string("line\nend"), std::string("\"quoted\""),
                                      std::string(), std::string(49, 'a')})
        events.add(EventKind::miss, reason, {1, 0});
    EXPECT_EQ(events.all().at(Key{EventKind::miss, "other"}).count, 5U);
    for (int i = 0; i < 100; ++i) events.add(EventKind::refused, "reason" + std::to_string(i), {1, 1});
    EXPECT_LE(events.all().size(), 1U + 33U);
    std::uint64_t total = 0;
    for (const auto& [what, tally] : events.all()) total += what.first == EventKind::refused ? tally.count : 0;
    EXPECT_EQ(total, 100U) << "none is lost";
    events.add(EventKind::hit, "restored", {UINT64_MAX, 1});
    events.add(EventKind::hit, "restored", {1, 1});
    EXPECT_EQ(events.all().at(Key{EventKind::hit, "restored"}), (Tally{UINT64_MAX, 2}));
}

TEST_F(EventsOfAFunction, OfAnotherVersionOrDamagedNeverStopTheCounters)
{
    const fs::path file = folder() / "usage.json";
    const std::string begin = R"({"hits":1,"misses":0,"recordings":0,"refusals":0,"saved_ms":0,"last_used":"")";
    open();
    write(file, begin + "}");
    EXPECT_EQ(open()->usage(k_decode).hits, 1U) << "a file of before there were events";
    write(file, begin + R"(,"events":[{"kind":"levitated","reason":"x","count":1,"bytes":0}]})");
    EXPECT_EQ(open()->usage(k_decode).hits, 1U);
    EXPECT_TRUE(open()->usage(k_decode).events.all().empty()) << "a kind of a newer version";
    for (const char* events :
         {"7", "{}", "[7]", R"([{"kind":"hit"}])", R"([{"kind":"hit","reason":"x","count":-1,"bytes":0}])"}) {
        write(file, begin + ",\"events\":" + events + "}");
        EXPECT_EQ(open()->usage(k_decode).hits, 0U) << events << " is damage";
    }
}

TEST_F(EventsOfAFunction, CountWhatIsEvictedAndDamaged)
{
    const auto store = open({.max_variants = 1});
    ASSERT_TRUE(store->publish(make_entry(k_decode, 1)));
    const auto size = fs::file_size(folder() / (to_hex(make_entry(k_decode, 1).header.key.guards_digest) + ".wg"));
    ASSERT_TRUE(store->publish(make_entry(k_decode, 2)));
    auto events = store->usage(k_decode).events.all();
    EXPECT_EQ(events.at(Key{EventKind::evicted, "variants"}), (Tally{1, size}));

    const Entry left = make_entry(k_decode, 2);
    write(folder() / (to_hex(left.header.key.guards_digest) + ".wg"), "short");
    EXPECT_FALSE(store->entry(left.header.key));
    events = store->usage(k_decode).events.all();
    EXPECT_EQ(events.at(Key{EventKind::damaged, "corrupt"}), (Tally{1, 5}));
}

} // namespace
} // namespace warmgraph::test::events_test
