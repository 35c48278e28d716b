// Tests tuned configurations in the cache folder and in any other tier.
#include "../store/artifact_folder.hpp"
#include "../store/memory_tier.hpp"
#include "sample_best_config.hpp"
#include "warmgraph/autotune/config_library.hpp"

namespace warmgraph::autotune::library_test {
namespace {

namespace fs = std::filesystem;
using test::sample_best_config;

class TunedFolder : public warmgraph::test::ArtifactFolder {
protected:
    TunedFolder() : ArtifactFolder("autotune") {}

    ConfigLibrary m_library{m_store->tier()};
    BestConfig m_best = sample_best_config();
};

TEST_F(TunedFolder, GivesWhatWasPutAndNothingBefore)
{
    const auto before = take(m_library.find(m_best.key));
    EXPECT_FALSE(before);
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    const auto found = take(m_library.find(m_best.key));
    EXPECT_EQ(*found, m_best);
    const std::string hex = to_hex(m_best.key);
    EXPECT_THAT(files(), ElementsAre(m_root / "autotune" / hex.substr(0, 2) / (hex + ".best_config")));
    ASSERT_TRUE(succeeded(m_library.remove(m_best.key)));
    EXPECT_FALSE(m_library.find(m_best.key).value());
}

TEST_F(TunedFolder, TheLastWriteCounts)
{
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    m_best.config = m_best.timings[0].config;
    const auto other = open(); // the folder of another rank
    ASSERT_TRUE(succeeded(ConfigLibrary{other->tier()}.put(m_best)));
    EXPECT_EQ(m_library.find(m_best.key).value()->config, m_best.config);
    EXPECT_EQ(files().size(), 1U);
}

TEST_F(TunedFolder, DamageIsAnErrorUntilTheNextPut)
{
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    const std::string text = encode(m_best);
    for (const std::string& damaged :
         {std::string{}, text.substr(0, text.size() / 2), text + "x", std::string(9, '\0')}) {
        overwrite(damaged);
        EXPECT_TRUE(failed_with(m_library.find(m_best.key), ErrorCode::corrupt)) << damaged;
    }
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    EXPECT_TRUE(m_library.find(m_best.key).value());
}

TEST_F(TunedFolder, AFileUnderAnothersNameIsStale)
{
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    BestConfig other = m_best;
    other.key = sha256(as_bytes("other"));
    overwrite(encode(other));
    EXPECT_TRUE(failed_with(m_library.find(m_best.key), ErrorCode::stale));
}

TEST_F(TunedFolder, AFailingWriteLeavesWhatWasThere)
{
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    BestConfig other = m_best;
    other.config = m_best.timings[0].config;
    for (const char* operation : {"write", "rename"}) {
        m_files.fail_all(operation, ErrorCode::no_space);
        EXPECT_TRUE(failed_with(m_library.put(other), ErrorCode::no_space)) << operation;
        m_files.stop_failing();
        EXPECT_EQ(m_library.find(m_best.key).value()->config, m_best.config) << operation;
    }
    EXPECT_EQ(files().size(), 1U) << "no temporary stays";
}

TEST_F(TunedFolder, AReadOnlyFolderIsReadAndNotWritten)
{
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    const auto store = open({.access = store::StoreMode::read_only});
    ConfigLibrary library{store->tier()};
    EXPECT_TRUE(library.find(m_best.key).value());
    EXPECT_TRUE(failed_with(library.put(m_best), ErrorCode::permission_denied));
    EXPECT_TRUE(failed_with(library.remove(m_best.key), ErrorCode::permission_denied));
}

// The file decides which code runs. So a user who may write the file could choose the code.
TEST_F(TunedFolder, AFileThatOthersMayWriteIsNotRead)
{
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    fs::permissions(files().at(0), fs::perms::others_write, fs::perm_options::add);
    EXPECT_TRUE(failed_with(m_library.find(m_best.key), ErrorCode::permission_denied));
}

TEST_F(TunedFolder, IsNoFindingOfACheck)
{
    ASSERT_TRUE(succeeded(m_library.put(m_best)));
    const auto damage = take(m_store->check());
    EXPECT_EQ(damage.size(), 0U);
}

TEST(TunedTier, AnyTierWillDo)
{
    warmgraph::test::MemoryTier tier;
    ConfigLibrary library{tier};
    const BestConfig best = sample_best_config();
    ASSERT_TRUE(succeeded(library.put(best)));
    EXPECT_EQ(*library.find(best.key).value(), best);
    const auto names = take(tier.list({.kind = store::ArtifactKind::tuned}));
    EXPECT_THAT(names, ElementsAre(store::Name{store::ArtifactName{store::ArtifactKind::tuned, best.key}}));
}

} // namespace
} // namespace warmgraph::autotune::library_test
