// Tests eviction when there are more variants than the limit, and images that no entry names.
#include "reseal.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::eviction_test {
namespace {

class Eviction : public StoreTest {
protected:
    bool exists(int variant) const { return fs::exists(path_of(make_entry(k_decode, variant).header.key)); }
    void set_age(int variant, int minutes) const
    {
        make_older(path_of(make_entry(k_decode, variant).header.key), std::chrono::minutes(minutes));
    }
};

TEST_F(Eviction, RemovesTheLeastRecentlyUsedVariantsOverTheLimit)
{
    const auto store = open({.max_variants = 3});
    for (const int variant : {0, 1, 2}) ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, variant))));
    set_age(0, 10);
    set_age(1, 30);
    set_age(2, 20);
    ASSERT_TRUE(store->entry(make_entry(k_decode, 1).header.key).value()); // the oldest entry is used again
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 3))));
    EXPECT_TRUE(exists(0));
    EXPECT_TRUE(exists(1));
    EXPECT_FALSE(exists(2)) << "the least recently used";
    EXPECT_TRUE(exists(3));
}

TEST_F(Eviction, NeverRemovesTheOneJustPublished)
{
    const auto store = open({.max_variants = 1});
    for (int variant = 0; variant < 5; ++variant) {
        ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, variant))));
        EXPECT_TRUE(exists(variant));
        make_older(path_of(make_entry(k_decode, variant).header.key), std::chrono::minutes(-60)); // in the future
        EXPECT_EQ(store->variants(k_decode).value().size(), 1U);
    }
}

TEST_F(Eviction, ALimitOfNoneStillKeepsTheLast)
{
    const auto store = open({.max_variants = 0});
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 0))));
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 1))));
    EXPECT_FALSE(exists(0));
    EXPECT_TRUE(exists(1));
}

TEST_F(Eviction, CountsTombstonesAndLeavesOtherFunctionsAlone)
{
    const auto store = open({.max_variants = 1});
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
    Entry tombstone = make_entry(k_decode, 0);
    tombstone.header.kind = cachefmt::EntryKind::tombstone;
    tombstone.graph = {};
    ASSERT_TRUE(succeeded(store->publish(tombstone)));
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 1))));
    EXPECT_FALSE(exists(0));
    EXPECT_EQ(store->variants(k_prompt).value().size(), 1U);
}

TEST_F(Eviction, ALoweredLimitTakesEffectAtTheNextPublish)
{
    for (int variant = 0; variant < 6; ++variant) {
        ASSERT_TRUE(succeeded(open()->publish(make_entry(k_decode, variant))));
        set_age(variant, 60 - variant);
    }
    ASSERT_TRUE(succeeded(open({.max_variants = 2})->publish(make_entry(k_decode, 6))));
    EXPECT_TRUE(exists(5));
    EXPECT_TRUE(exists(6));
    EXPECT_EQ(open()->variants(k_decode).value().size(), 2U);
}

TEST_F(Eviction, RemovesImagesThatNoEntryNamesOnceTheyAreOld)
{
    const auto store = open();
    const Bytes used = image_of("used");
    const Bytes unused = image_of("unused");
    const Bytes young = image_of("young");
    for (const Bytes& image : {used, unused, young}) ASSERT_TRUE(store->publish_image(image).value());
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 0, "", {used}))));
    make_older(path_of(used), std::chrono::hours(5));
    make_older(path_of(unused), std::chrono::hours(5));
    EXPECT_EQ(store->clear({.kinds = {store::ArtifactKind::images}}).value().of(store::ArtifactKind::images).files, 1U);
    EXPECT_TRUE(fs::exists(path_of(used)));
    EXPECT_FALSE(fs::exists(path_of(unused)));
    EXPECT_TRUE(fs::exists(path_of(young))) << "its entry may be on the way";
}

TEST_F(Eviction, KeepsEveryImageWhileANewerFormatsEntryIsThere)
{
    const auto store = open();
    const Bytes unused = image_of("unused");
    const Entry entry = make_entry(k_decode);
    ASSERT_TRUE(store->publish_image(unused).value());
    ASSERT_TRUE(succeeded(store->publish(entry)));
    make_older(path_of(unused), std::chrono::hours(5));
    const std::string text = text_of(path_of(entry.header.key));
    Bytes bytes(as_bytes(text).begin(), as_bytes(text).end());
    poke(bytes, envelope_at::version, cachefmt::k_format_version + 1);
    reseal(bytes, entry.header.key);
    write(path_of(entry.header.key), as_text(bytes));
    EXPECT_EQ(store->clear({.kinds = {store::ArtifactKind::images}}).value().of(store::ArtifactKind::images).files, 0U);
    EXPECT_TRUE(fs::exists(path_of(unused)));
}

} // namespace
} // namespace warmgraph::test::eviction_test
