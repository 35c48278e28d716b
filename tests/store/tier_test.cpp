// Tests tiers: names as text, and the tiers of this folder.
#include "tier_conformance.hpp"
#include "warmgraph/store/store.hpp"

namespace warmgraph::test::tier_test {
namespace {

using store::ImageName;
using store::Name;

TEST(TierNames, AreTextAndBack)
{
    const EntryKey key = make_entry(k_decode).header.key;
    EXPECT_EQ(store::to_text(key),
              "entries/tiny_static_clgraphcache_0123456789ab/world1global_rank0/decode/" + to_hex(key.guards_digest));
    const ImageName image{sha256(as_bytes("code"))};
    EXPECT_EQ(store::to_text(image), "images/" + to_hex(image.digest));
    const store::ArtifactName tuned{store::ArtifactKind::tuned, image.digest};
    EXPECT_EQ(store::to_text(tuned), "autotune/" + to_hex(image.digest) + ".best_config");
    const store::ArtifactName module{store::ArtifactKind::tuned, image.digest, store::k_module_form};
    for (const Name& name : {Name(key), Name(image), Name(tuned), Name(module)})
        EXPECT_EQ(store::name_from_text(store::to_text(name)), name);
}

TEST(TierNames, ThatTheLibraryDoesNotMakeAreNone)
{
    const std::string hex(64, 'a');
    const std::string folder = "entries/tiny_static_clgraphcache_0123456789ab/world1global_rank0/";
    ASSERT_TRUE(store::name_from_text(folder + "decode/" + hex));
    for (const std::string& text :
         {std::string(), hex, "image/" + hex, "images/" + hex + "a", "images/" + std::string(64, 'A'), "images//" + hex,
          folder + "decode", folder + "../" + hex, folder + "/" + hex, folder + "decode/" + hex + "/",
          folder + "decode/more/" + hex, "entries/tiny/world1global_rank0/decode/" + hex,
          "/" + folder + "decode/" + hex, "autotune/" + hex, "autotune/" + hex + ".best_config.best_config",
          "autotune/x/" + hex + ".best_config", "autotune/" + std::string(64, 'A') + ".best_config"})
        EXPECT_FALSE(store::name_from_text(text)) << text;
}

/// Tiers that remember what they refused. A remote's backend does not: RemoteTier does it for all.
class TierRefusals : public TierConformance {};

TEST_P(TierRefusals, GivesRefusedBytesNoMore)
{
    const Name name = entry(k_decode, "a");
    put(name, "damaged");
    m_tier->refuse(name, (*m_tier->get(name, {100}))->stamp, {ErrorCode::corrupt, "a test says so"});
    EXPECT_EQ(text_of(name), "none");
    EXPECT_TRUE(m_tier->list({}).value().empty());
    put(name, "better");
    EXPECT_EQ(text_of(name), "better");
}

TEST_P(TierRefusals, GivesDamageToTheTypedStoreWhichRefusesIt)
{
    store::Store store(*m_tier);
    const Entry one = make_entry(k_decode);
    ASSERT_TRUE(succeeded(store.publish(one)));
    Bytes bytes = *(*m_tier->get(one.header.key, {1 << 20}))->bytes;
    bytes[200] ^= std::byte{1};
    ASSERT_TRUE(succeeded(m_tier->put(one.header.key, bytes)));
    EXPECT_TRUE(failed_with(store.entry(one.header.key), ErrorCode::corrupt, to_hex(one.header.key.guards_digest)));
    EXPECT_FALSE(store.entry(one.header.key).value()) << "it is gone";
    ASSERT_TRUE(succeeded(m_tier->put(image("right"), as_bytes("wrong"))));
    EXPECT_FALSE(store.image(sha256(as_bytes("right"))).value());
    EXPECT_EQ(text_of(image("right")), "none");
}

INSTANTIATE_TEST_SUITE_P(All, TierConformance, testing::ValuesIn(k_tiers),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(All, TierRefusals, testing::ValuesIn(k_tiers),
                         [](const auto& tested) { return std::string(tested.param.name); });

} // namespace
} // namespace warmgraph::test::tier_test
