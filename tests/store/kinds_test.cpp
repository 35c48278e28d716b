// For each kind of object in a folder: its size, its budget, and the order in which it was used.
#include <set>

#include "child_process.hpp"
#include "store_fixture.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::test::kinds_test {
namespace {

using std::chrono::minutes;
using store::ArtifactKind;
using store::ArtifactName;

class Kinds : public StoreTest {
protected:
    /// Stores an object that was last used `age` ago.
    ArtifactName put(LocalStore& store, ArtifactKind kind, int number, std::size_t bytes, minutes age,
                     std::uint8_t form = 0)
    {
        const ArtifactName name{kind, sha256(as_bytes(std::to_string(number))), form};
        EXPECT_TRUE(succeeded(store.tier().put(name, Bytes(bytes))));
        make_older(path_of(name), age);
        return name;
    }
    [[nodiscard]] fs::path path_of(const ArtifactName& name) const
    {
        const std::string file = store::file_name(name);
        return m_root / store::row_of(name.kind).folder / file.substr(0, 2) / file;
    }
    using StoreTest::path_of;
    [[nodiscard]] bool exists(const ArtifactName& name) const { return fs::exists(path_of(name)); }
    /// Publishes an entry as a process that has ended.
    Entry publish_aged(minutes age)
    {
        const Entry entry = make_entry(k_decode);
        {
            EXPECT_TRUE(succeeded(open()->publish(entry)));
        }
        make_older(path_of(entry.header.key), age);
        return entry;
    }
};

TEST_F(Kinds, AreMeasuredEachByItself)
{
    const auto store = open();
    ASSERT_TRUE(store->publish_image(image_of("code")).value());
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 0, "", {image_of("code")}))));
    put(*store, ArtifactKind::compiled, 0, 100, minutes(0));
    put(*store, ArtifactKind::tuned, 0, 20, minutes(0));
    put(*store, ArtifactKind::tuned, 0, 30, minutes(0), store::k_module_form);
    put(*store, ArtifactKind::profiles, 0, 7, minutes(0));
    put(*store, ArtifactKind::torch, 0, 1000, minutes(0));
    const auto held = store->held().value();
    EXPECT_EQ(held.at(ArtifactKind::entries).files, 2U) << "the entry and its image";
    EXPECT_EQ(held.at(ArtifactKind::compiled).bytes, 100U);
    EXPECT_EQ(held.at(ArtifactKind::tuned).files, 2U);
    EXPECT_EQ(held.at(ArtifactKind::tuned).bytes, 50U);
    EXPECT_EQ(held.at(ArtifactKind::profiles).bytes, 7U);
    EXPECT_EQ(held.at(ArtifactKind::torch).bytes, 1000U);
    std::uint64_t files = 0, bytes = 0;
    for (const auto& [kind, amount] : held) files += amount.files, bytes += amount.bytes;
    const auto all = store->plan_prune().value().before;
    EXPECT_EQ(all.files, files);
    EXPECT_EQ(all.bytes, bytes);
}

TEST_F(Kinds, OneIsPrunedAndTheOthersAreLeftAlone)
{
    const Entry entry = publish_aged(minutes(600));
    const auto store = open();
    const ArtifactName profile = put(*store, ArtifactKind::profiles, 0, 1000, minutes(600)),
                       old = put(*store, ArtifactKind::compiled, 1, 1000, minutes(60)),
                       young = put(*store, ArtifactKind::compiled, 2, 1000, minutes(30));
    const auto planned = store->plan_prune({.bytes = 1500, .kind = ArtifactKind::compiled}).value();
    EXPECT_TRUE(exists(old)) << "a plan changes nothing";
    const auto pruned = store->prune({.bytes = 1500, .kind = ArtifactKind::compiled}).value();
    for (const auto& result : {planned, pruned}) {
        EXPECT_EQ(result.before.bytes, 2000U) << "of the kind";
        EXPECT_EQ(result.after.bytes, 1000U);
        EXPECT_EQ(result.removed.of(ArtifactKind::compiled).files, 1U);
        EXPECT_EQ(result.removed.files(), 1U);
    }
    EXPECT_FALSE(exists(old));
    EXPECT_TRUE(exists(young) && exists(profile) && fs::exists(path_of(entry.header.key)));
    EXPECT_EQ(store->prune({.older = std::chrono::hours(1), .kind = ArtifactKind::profiles})
                  .value()
                  .removed.of(ArtifactKind::profiles)
                  .files,
              1U);
    EXPECT_TRUE(fs::exists(path_of(entry.header.key))) << "as old, and of another kind";
    EXPECT_EQ(store->prune({.bytes = 0, .kind = ArtifactKind::entries}).value().removed.of(ArtifactKind::entries).files,
              1U);
    EXPECT_TRUE(exists(young));
}

TEST_F(Kinds, APartOfTheBudgetIsKeptByWhoPublishes)
{
    const auto store = open({.budget = {.kinds = {{ArtifactKind::compiled, 5000}}}}, posix_file_system(), m_set_clock);
    EXPECT_EQ(store->budget().kinds.at(ArtifactKind::compiled), 5000U);
    const ArtifactName tuned = put(*store, ArtifactKind::tuned, 0, 20'000, minutes(1000));
    for (int number = 0; number < 20; ++number) {
        put(*store, ArtifactKind::compiled, number, 1000, minutes(100 - number));
        store->make_room();
        EXPECT_LE(store->held().value().at(ArtifactKind::compiled).bytes, 5000U + 1000U);
    }
    EXPECT_TRUE(exists(tuned)) << "it has no part, and there is room";
    EXPECT_TRUE(exists({ArtifactKind::compiled, sha256(as_bytes(std::string("19")))})) << "the last one stays";
    EXPECT_GT(store->held().value().at(ArtifactKind::compiled).files, 2U) << "and no more is thrown away than must be";
}

TEST_F(Kinds, OneThatIsOverItsPartTakesNothingOfOthers)
{
    const auto store =
        open({.budget = {.bytes = 100'000, .kinds = {{ArtifactKind::compiled, 5000}, {ArtifactKind::tuned, 2000}}}},
             posix_file_system(), m_set_clock);
    const ArtifactName torch = put(*store, ArtifactKind::torch, 0, 88'000, minutes(1000)),
                       tuned = put(*store, ArtifactKind::tuned, 0, 1950, minutes(1000));
    for (int number = 0; number < 8; ++number) put(*store, ArtifactKind::compiled, number, 1000, minutes(100 - number));
    store->make_room();
    EXPECT_LE(store->held().value().at(ArtifactKind::compiled).bytes, 5000U);
    EXPECT_TRUE(exists(torch) && exists(tuned)) << "neither they nor the folder are over";
}

TEST_F(Kinds, WhatCostMoreThanItSavedIsTakenOff)
{
    {
        const auto store = open();
        store->add_usage_soon(ArtifactKind::compiled, {.hits = 1, .saved_ms = 100});
    }
    {
        const auto store = open();
        store->add_usage_soon(ArtifactKind::compiled, {.saved_ms = -30});
        store->add_usage_soon(ArtifactKind::tuned, {.misses = 1, .saved_ms = -5});
    }
    EXPECT_EQ(open()->usage(ArtifactKind::compiled).saved_ms, 70);
    EXPECT_EQ(open()->usage(ArtifactKind::tuned).saved_ms, 0) << "never less than nothing";
    EXPECT_EQ(open()->usage(ArtifactKind::tuned).misses, 1U);
}

TEST_F(Kinds, WhatIsSmallAndDearGoesLast)
{
    const auto store = open();
    const ArtifactName tuned = put(*store, ArtifactKind::tuned, 0, 100, minutes(600)),
                       profile = put(*store, ArtifactKind::profiles, 0, 100, minutes(600)),
                       program = put(*store, ArtifactKind::compiled, 0, 10'000, minutes(30));
    EXPECT_EQ(store->prune({.bytes = 1000}).value().removed.files(), 1U);
    EXPECT_FALSE(exists(program));
    EXPECT_TRUE(exists(tuned) && exists(profile));
    EXPECT_EQ(store->prune({.bytes = 0}).value().after.files, 0U) << "but it does count";
}

TEST_F(Kinds, AHitIsAUse)
{
    const auto store = open();
    const ArtifactName used = put(*store, ArtifactKind::profiles, 0, 1000, minutes(600)),
                       other = put(*store, ArtifactKind::profiles, 1, 1000, minutes(300));
    ASSERT_TRUE(succeeded(store->tier().note_use(used)));
    EXPECT_EQ(
        store->prune({.bytes = 1000, .kind = ArtifactKind::profiles}).value().removed.of(ArtifactKind::profiles).files,
        1U);
    EXPECT_TRUE(exists(used) && !exists(other));
}

TEST_F(Kinds, AreCountedForAllProcesses)
{
    const auto count = [this] {
        const auto store = open();
        store->add_usage_soon(
            ArtifactKind::compiled,
            {.hits = 2, .saved_ms = 12.5, .events = store::one_event(store::EventKind::hit, "loaded")});
        store->add_usage_soon(ArtifactKind::tuned, {.misses = 1});
    };
    ChildProcess other([&count] {
        count();
        return 0;
    });
    EXPECT_EQ(other.wait(), 0);
    count();
    const auto store = open();
    EXPECT_EQ(store->usage(ArtifactKind::compiled).hits, 4U);
    EXPECT_EQ(store->usage(ArtifactKind::compiled).saved_ms, 25);
    EXPECT_EQ(store->usage(ArtifactKind::compiled).events.all().size(), 1U);
    EXPECT_EQ(store->usage(ArtifactKind::tuned).misses, 2U);
    EXPECT_EQ(store->usage(ArtifactKind::profiles).hits, 0U);
    EXPECT_THAT(store->check().value(), IsEmpty()) << "the counters are the library's own";
    EXPECT_TRUE(store->functions().value().empty());
    EXPECT_EQ(store->clear({.kinds = {ArtifactKind::compiled}}).value().files(), 0U) << "counters are no programs";
    EXPECT_EQ(store->usage(ArtifactKind::compiled).hits, 0U) << "but they go with them";
    EXPECT_EQ(store->usage(ArtifactKind::tuned).misses, 2U);
}

TEST(BudgetText, HasSizesAsPeopleWriteThem)
{
    constexpr std::uint64_t k_gib = 1ULL << 30;
    for (const char* text : {"10G", "10GB", "10GiB", "10 G", "10 GB", "10 GiB", "10g", "10gb"})
        EXPECT_EQ(store::parse_bytes("x", text).value_or(0), 10 * k_gib) << text;
    EXPECT_EQ(store::parse_bytes("x", "1.5G").value_or(0), k_gib + k_gib / 2);
    EXPECT_EQ(store::parse_bytes("x", "0.25 MiB").value_or(0), 256U << 10U);
    EXPECT_EQ(store::parse_bytes("x", "17").value_or(0), 17U);
    EXPECT_EQ(store::parse_count("x", "100000").value_or(0), 100'000U);
    EXPECT_TRUE(
        failed_with(store::parse_count("x", "1e5"), ErrorCode::invalid_argument, "expected a number like 100000"));
    EXPECT_EQ(store::parse_bytes("x", "17 B").value_or(0), 17U);
    for (const char* wrong :
         {"", "G", "B", "iB", " ", "1.5", "1.G", ".5G", "1.5.5G", "-1G", "1e3G", "10 X", "1.12345678G", "99999999999T"})
        EXPECT_TRUE(failed_with(store::parse_bytes("x", wrong), ErrorCode::invalid_argument, "expected a size like 8G"))
            << wrong;
}

TEST(BudgetText, IsASizeForAllAndSizesByKind)
{
    const auto budget = take(store::parse_budget("WARMGRAPH_CACHE_BYTES", "8G,compiled=1G,tuned=64M"));
    EXPECT_EQ(budget.all, 8ULL << 30);
    EXPECT_EQ(budget.kinds,
              (store::KindBytes{{ArtifactKind::compiled, 1ULL << 30}, {ArtifactKind::tuned, 64ULL << 20}}));
    EXPECT_EQ(store::parse_budget("x", "torch=5")->kinds, (store::KindBytes{{ArtifactKind::torch, 5}}));
    EXPECT_EQ(store::parse_budget("x", "torch=5")->all, 0U);
    EXPECT_TRUE(store::parse_budget("x", "")->kinds.empty());
    for (const char* wrong : {"compiled", "images=1G", "compiled=", "8G,", ",8G", "compiled=1G=2", "=1G"})
        EXPECT_TRUE(failed_with(store::parse_budget("WARMGRAPH_CACHE_BYTES", wrong), ErrorCode::invalid_argument,
                                "WARMGRAPH_CACHE_BYTES"))
            << wrong;
    EXPECT_TRUE(failed_with(store::parse_budget("x", "images=1G"), ErrorCode::invalid_argument,
                            "the kind 'images': expected entries, compiled, tuned, profiles or torch"));
}

TEST(KindTable, HasAllThatIsAskedOfEachKind)
{
    std::set<std::string_view> words;
    for (const store::KindRow& row : store::k_kinds) {
        EXPECT_EQ(&store::row_of(row.kind), &row);
        EXPECT_EQ(to_string(row.kind), row.word);
        EXPECT_GT(row.most_bytes, 0U) << row.word;
        EXPECT_TRUE(words.insert(row.word).second) << row.word;
        for (const std::string_view old : row.old_words)
            EXPECT_TRUE(old.empty() || words.insert(old).second) << old << " would mean two kinds";
        EXPECT_EQ(store::row_of(row.part_of).part_of, row.part_of) << "a part has no parts";
        EXPECT_EQ(row.is_for(store::KindUse::budgeted), row.part_of == row.kind) << row.word;
    }
    EXPECT_EQ(to_string(static_cast<ArtifactKind>(0)), "unknown");
    EXPECT_EQ(to_string(static_cast<ArtifactKind>(99)), "unknown");
}

TEST(KindTable, GivesEveryFileItsKindAndForm)
{
    const Digest digest = sha256(as_bytes("x"));
    for (const ArtifactKind kind : store::kinds_with_files())
        for (std::uint8_t form = 0; form < store::row_of(kind).suffixes.size(); ++form) {
            if (store::row_of(kind).suffixes.at(form).empty()) continue;
            const ArtifactName name{kind, digest, form};
            EXPECT_EQ(store::artifact_from_file_name(store::file_name(name)), name);
            EXPECT_EQ(store::name_from_text(store::to_text(name)), store::Name{name});
        }
}

TEST(KindWord, OfAnEarlierVersionIsAnErrorThatNamesTheRightOne)
{
    for (const auto& [old, now] :
         {std::pair{"graphs", "entries"}, {"graph", "entries"}, {"autotune", "tuned"}, {"profile", "profiles"}})
        EXPECT_TRUE(failed_with(store::parse_kind("x", old, store::KindUse::bundled), ErrorCode::invalid_argument,
                                fmt::format("x has the kind '{}', which is called '{}' now", old, now)));
    EXPECT_TRUE(failed_with(store::parse_kind("x", "graphs", store::KindUse::explained), ErrorCode::invalid_argument,
                            "'entries' now: expected entries or compiled"));
    EXPECT_TRUE(failed_with(store::parse_kind("x", "", store::KindUse::explained, {"all"}), ErrorCode::invalid_argument,
                            "the kind '': expected entries, compiled or all"));
    EXPECT_TRUE(failed_with(store::parse_kind("x", "images", store::KindUse::budgeted), ErrorCode::invalid_argument));
}

} // namespace
} // namespace warmgraph::test::kinds_test
