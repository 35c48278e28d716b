// Tests tiers: names as text, and the tiers of this folder.
#include "tier_conformance.hpp"

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

INSTANTIATE_TEST_SUITE_P(All, TierConformance, testing::ValuesIn(k_tiers),
                         [](const auto& tested) { return std::string(tested.param.name); });

} // namespace
} // namespace warmgraph::test::tier_test
