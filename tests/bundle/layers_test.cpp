// Tests bundles as layers below a cache folder.
#include "bundle_fixture.hpp"
#include "warmgraph/bundle/bundle_tier.hpp"

namespace warmgraph::test::layers_test {
namespace {

class Layers : public BundleTest {
protected:
    Layers()
    {
        const auto store = LocalStore::open(m_dir.path() / "origin").value();
        fill(*store);
        m_bytes = make(*store);
    }
    void add_bundle(LocalStore& store, const cachefmt::Trust& trust = {}) const
    {
        store.add_layer(std::make_shared<bundle::BundleTier>(open_bundle(m_bytes, trust).value(), "test.wgb"), trust);
    }
    Bytes m_bytes;
};

TEST_F(Layers, GiveWhatTheFolderDoesNotHaveAndUnpackNothing)
{
    const auto store = open();
    add_bundle(*store);
    for (const Entry& entry : m_entries) {
        EXPECT_EQ(*store->header(entry.header.key).value(), entry.header);
        EXPECT_EQ(store->entry(entry.header.key).value(), entry);
    }
    EXPECT_EQ(store->image(sha256(m_own)).value(), m_own);
    EXPECT_EQ(store->functions().value(), (std::vector<FunctionKey>{k_decode, k_prompt}));
    EXPECT_EQ(store->variants(k_decode).value().size(), 2U);
    EXPECT_EQ(store->object(store::ImageName{sha256(m_own)}).value(), m_own);
    EXPECT_THAT(names_in(m_root), IsEmpty());
}

TEST_F(Layers, ComeAfterTheFolder)
{
    const auto store = open();
    add_bundle(*store);
    const Entry mine = make_entry(k_decode, 1, "mine");
    const Entry refused = make_tombstone(k_decode, 2);
    ASSERT_TRUE(succeeded(store->publish(mine)));
    ASSERT_TRUE(succeeded(store->publish(refused)));
    EXPECT_EQ(store->entry(mine.header.key).value(), mine);
    EXPECT_EQ(store->header(refused.header.key).value()->kind, cachefmt::EntryKind::tombstone);
    const auto variants = store->variants(k_decode).value();
    ASSERT_EQ(variants.size(), 2U);
    for (const auto& variant : variants)
        EXPECT_TRUE(variant.header->info.verification == "mine" ||
                    variant.header->kind == cachefmt::EntryKind::tombstone);
}

TEST_F(Layers, StandInForWhatIsDamagedInTheFolder)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(store->publish(m_entries[0])));
    flip(path_of(m_entries[0].header.key), fs::file_size(path_of(m_entries[0].header.key)) - 1);
    EXPECT_TRUE(failed_with(store->entry(m_entries[0].header.key), ErrorCode::corrupt));
    ASSERT_TRUE(succeeded(store->publish(m_entries[0])));
    flip(path_of(m_entries[0].header.key), fs::file_size(path_of(m_entries[0].header.key)) - 1);
    add_bundle(*store);
    EXPECT_EQ(store->entry(m_entries[0].header.key).value(), m_entries[0]);
}

TEST_F(Layers, AreNotAskedAgainForWhatWasRemovedOrSetAside)
{
    const auto store = open();
    add_bundle(*store);
    ASSERT_TRUE(succeeded(store->remove(m_entries[0].header.key)));
    EXPECT_EQ(store->entry(m_entries[0].header.key).value(), std::nullopt);
    store->set_aside(m_entries[1].header, {ErrorCode::corrupt, "of no use"});
    EXPECT_EQ(store->entry(m_entries[1].header.key).value(), std::nullopt);
    EXPECT_THAT(store->variants(k_decode).value(), IsEmpty());
    EXPECT_EQ(store->entry(m_entries[2].header.key).value(), m_entries[2]);
}

TEST_F(Layers, ServeWithoutAFolder)
{
    const auto store = LocalStore::without_folder("the disk is read-only");
    add_bundle(*store);
    EXPECT_EQ(store->entry(m_entries[0].header.key).value(), m_entries[0]);
    EXPECT_EQ(store->variants(k_decode).value().size(), 2U);
    EXPECT_EQ(store->image(sha256(m_own)).value(), m_own);
    EXPECT_EQ(store->why_read_only(), "the disk is read-only");
    EXPECT_TRUE(failed_with(store->publish(make_entry(k_decode, 9)), ErrorCode::permission_denied));
    EXPECT_EQ(store->entry(make_entry(k_decode, 9).header.key).value(), std::nullopt);
    store->note_use(m_entries[0].header.key);
    store->add_usage(k_decode, {.hits = 1});
    const auto mark = store->begin_load(m_entries[0].header.key, {"1", "cpu"});
    EXPECT_TRUE(succeeded(mark));
    EXPECT_EQ(store->usage(k_decode).hits, 0U);
}

TEST_F(Layers, GiveNothingUnsignedWhereSignaturesAreRequired)
{
    const auto key =
        std::make_shared<const SigningKey>(SigningKey::generate("release", SignatureKind::hmac_sha256).value());
    const auto store = open();
    add_bundle(*store, {{}, {key}, true});
    EXPECT_TRUE(failed_with(store->header(m_entries[0].header.key), ErrorCode::untrusted, "is not signed"));
    EXPECT_TRUE(failed_with(store->entry(m_entries[0].header.key), ErrorCode::untrusted));
    EXPECT_FALSE(store->variants(k_decode).value().front().header);
}

} // namespace
} // namespace warmgraph::test::layers_test
