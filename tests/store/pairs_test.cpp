// Forward and backward of a pair are recorded together. The store keeps, evicts and removes them together.
#include "child_process.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::store_pairs_test {
namespace {

using cachefmt::Part;
using std::chrono::minutes;

class StoredPairs : public StoreTest {
protected:
    static Entry part_of(std::uint64_t recording, Part part, int variant = 0)
    {
        Entry entry = make_entry(k_decode, static_cast<int>(recording) * 100 + static_cast<int>(part) * 10 + variant);
        entry.header.recording = {{recording, recording}, part};
        return entry;
    }
    /// Publishes as a process that ended `age` ago.
    Entry publish(const Entry& entry, minutes age)
    {
        EXPECT_TRUE(succeeded(open()->publish(entry)));
        make_older(path_of(entry.header.key), age);
        return entry;
    }
    std::pair<Entry, Entry> publish_pair(std::uint64_t recording, minutes age)
    {
        const Entry backward = publish(part_of(recording, Part::backward), age);
        return {publish(part_of(recording, Part::forward), age), backward};
    }
    bool exists(const Entry& entry) const { return fs::exists(path_of(entry.header.key)); }
    bool exist(const std::pair<Entry, Entry>& pair) const { return exists(pair.first) && exists(pair.second); }
    bool is_gone(const std::pair<Entry, Entry>& pair) const { return !exists(pair.first) && !exists(pair.second); }
    static std::string name_of(const Entry& entry) { return to_hex(entry.header.key.guards_digest) + ".wg"; }
};

TEST_F(StoredPairs, CheckNamesOneWithoutTheOtherAndPruneRemovesIt)
{
    const auto whole = publish_pair(1, minutes(30));
    const Entry second = publish(part_of(1, Part::backward, 1), minutes(30)); // belongs to the same forward entry
    const Entry backward = publish(part_of(2, Part::backward), minutes(30)),
                forward = publish(part_of(3, Part::forward), minutes(30)),
                young = publish(part_of(4, Part::backward), minutes(1)); // its forward may still be published
    Entry tombstone = part_of(5, Part::backward);
    tombstone.header.kind = cachefmt::EntryKind::tombstone;
    tombstone.graph = {};
    publish(tombstone, minutes(30));

    const auto store = open();
    std::vector<std::string> named;
    const auto damages = store->check().value();
    for (const auto& damage : damages) {
        EXPECT_EQ(damage.error.code, ErrorCode::not_found);
        EXPECT_THAT(damage.error.message, HasSubstr("is not used without"));
        named.push_back(damage.path.filename());
    }
    EXPECT_THAT(named, UnorderedElementsAre(name_of(backward), name_of(forward)));
    EXPECT_EQ(store->plan_prune().value().removed.of(store::ArtifactKind::entries).files, 2U);
    EXPECT_EQ(store->prune().value().removed.of(store::ArtifactKind::entries).files, 2U);
    EXPECT_FALSE(exists(backward) || exists(forward));
    EXPECT_TRUE(exist(whole) && exists(second) && exists(young) && exists(tombstone));
    EXPECT_TRUE(store->check().value().empty());
}

TEST_F(StoredPairs, EachRankHasItsOwn)
{
    Entry backward = part_of(1, Part::backward);
    backward.header.key.function.rank = "world2global_rank1";
    publish(part_of(1, Part::forward), minutes(30)), publish(backward, minutes(30));
    EXPECT_EQ(open()->check().value().size(), 2U);
}

TEST_F(StoredPairs, GoTogetherForTheBudgetAndByTheLastUseOfEither)
{
    const auto used = publish_pair(1, minutes(50)), old = publish_pair(2, minutes(40));
    const Entry alone = publish(make_entry(k_decode, 7), minutes(30));
    make_older(path_of(used.second.header.key), minutes(20)); // since then, only backward was used
    const auto size = fs::file_size(path_of(alone.header.key));
    static_cast<void>(open()->prune({.bytes = 4 * size}));
    EXPECT_TRUE(exist(used) && exists(alone));
    EXPECT_TRUE(is_gone(old));
    static_cast<void>(open()->prune({.bytes = 3 * size}));
    EXPECT_TRUE(exist(used) && !exists(alone));
    static_cast<void>(open()->prune({.bytes = size + size / 2}));
    EXPECT_TRUE(is_gone(used)) << "one without the other is of no use";
}

TEST_F(StoredPairs, StayWhereALivingProcessUsesForward)
{
    const auto pair = publish_pair(1, minutes(50));
    Gate ready, end;
    ChildProcess user([&] {
        const auto store = open();
        const bool ok = store->entry(pair.first.header.key).value().has_value();
        make_older(path_of(pair.first.header.key), minutes(50)); // older, so that its age does not protect it
        ready.open();
        end.wait();
        return ok ? 0 : 1;
    });
    ready.wait();
    static_cast<void>(open()->prune({.bytes = 0}));
    EXPECT_TRUE(exist(pair));
    end.open();
    EXPECT_EQ(user.wait(), 0);
    static_cast<void>(open()->prune({.bytes = 0}));
    EXPECT_TRUE(is_gone(pair));
}

TEST_F(StoredPairs, AreOneVariantUnderTheLimit)
{
    const auto store = open({.max_variants = 2});
    const auto first = publish_pair(1, minutes(50)), second = publish_pair(2, minutes(40));
    EXPECT_TRUE(exist(first));
    ASSERT_TRUE(succeeded(store->publish(part_of(2, Part::backward, 1))));
    EXPECT_TRUE(exist(first) && exist(second)) << "two recordings are in five files";
    ASSERT_TRUE(succeeded(store->publish(part_of(3, Part::backward))));
    EXPECT_TRUE(is_gone(first));
    ASSERT_TRUE(succeeded(store->publish(part_of(3, Part::forward))));
    EXPECT_TRUE(exist(second));
    EXPECT_EQ(store->variants(k_decode).value().size(), 5U);
}

/// The Python package stores forward and backward as separate functions.
TEST_F(StoredPairs, AreClearedTogetherAlsoWhereTheyAreTwoFunctions)
{
    Entry backward = part_of(1, Part::backward), alone = make_entry(k_prompt, 1);
    backward.header.key.function.function = "decode.backward";
    const Entry forward = part_of(1, Part::forward), anothers = part_of(2, Part::forward);
    for (const Entry& entry : {backward, forward, anothers, alone}) publish(entry, minutes(1));
    const store::ClearRequest request{.function = "decode.backward"};
    const auto store = open();
    EXPECT_EQ(store->plan_clear(request).value().of(store::ArtifactKind::entries).files, 3U);
    EXPECT_EQ(store->clear(request).value().functions, 2U);
    EXPECT_FALSE(exists(forward) || exists(backward) || exists(anothers)) << "the whole function goes";
    EXPECT_TRUE(exists(alone));
}

} // namespace
} // namespace warmgraph::test::store_pairs_test
