// Tests a bundle as a tier of the typed store.
#include "bundle_fixture.hpp"
#include "warmgraph/bundle/bundle_tier.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/store/store.hpp"

namespace warmgraph::test::bundle_tier_test {
namespace {

class BundleTierTest : public BundleTest {
protected:
    BundleTierTest()
    {
        const auto folder = open();
        fill(*folder);
        m_bytes = make(*folder);
    }
    bundle::BundleTier tier() const { return {open_bundle(m_bytes).value(), "test.wgb"}; }
    Bytes m_bytes;
};

TEST_F(BundleTierTest, GivesEntriesAndImagesToTheStore)
{
    auto tier = this->tier();
    store::Store store(tier);
    for (const Entry& entry : m_entries) {
        EXPECT_EQ(*store.header(entry.header.key).value(), entry.header);
        EXPECT_EQ(store.entry(entry.header.key).value(), entry);
    }
    EXPECT_EQ(store.variants(k_decode).value().size(), 2U);
    EXPECT_EQ(store.image(sha256(m_own)).value(), m_own);
    EXPECT_EQ(store.image(sha256(m_own), m_own.size() - 1).value(), std::nullopt);
    EXPECT_EQ(store.image(sha256(m_own)).value(), m_own) << "a wrong size was the entry's fault";
    EXPECT_EQ(store.entry(make_entry(k_decode, 9).header.key).value(), std::nullopt);
    EXPECT_EQ(tier.list({store::ArtifactKind::images, {}}).value().size(), 2U);
    EXPECT_EQ(tier.list({}).value().size(), 3U);
}

TEST_F(BundleTierTest, TakesAHeadThatIsLargerThanTheFirstRead)
{
    Entry large = make_entry(k_decode, 5);
    for (int i = 0; i < 2000; ++i)
        large.header.guards.facts.push_back({fmt::format("config.x{:05}", i), std::string(20, 'v')});
    guards::canonicalize(large.header.guards.facts);
    large.header.key.guards_digest = cachefmt::guards_digest(large.header.guards);
    const auto folder = open();
    ASSERT_TRUE(succeeded(folder->publish(large)));
    m_entries = {large};
    m_bytes = make(*folder);
    auto tier = this->tier();
    store::Store store(tier);
    ASSERT_GT(tier.bundle().members().front().head.size(), 32U << 10U);
    EXPECT_EQ(*store.header(large.header.key).value(), large.header);
    EXPECT_EQ(*store.variants(k_decode).value().front().header, large.header);
    EXPECT_EQ(store.entry(large.header.key).value(), large);
}

TEST_F(BundleTierTest, DoesNotGiveWhatWasRefusedAndIsNeverWritten)
{
    const auto offset = open_bundle(m_bytes).value()->find(entry_name(m_entries[0]))->offset;
    m_bytes[offset] ^= std::byte{1};
    auto tier = this->tier();
    store::Store store(tier);
    EXPECT_TRUE(succeeded(store.header(m_entries[0].header.key)));
    EXPECT_TRUE(failed_with(store.entry(m_entries[0].header.key), ErrorCode::corrupt));
    EXPECT_EQ(store.entry(m_entries[0].header.key).value(), std::nullopt) << "it counts once";
    EXPECT_EQ(store.entry(m_entries[1].header.key).value(), m_entries[1]) << "the rest works";
    EXPECT_TRUE(failed_with(store.publish(m_entries[0]), ErrorCode::permission_denied, "test.wgb"));
    EXPECT_TRUE(failed_with(store.remove(m_entries[0].header.key), ErrorCode::permission_denied, "test.wgb"));
}

} // namespace
} // namespace warmgraph::test::bundle_tier_test
