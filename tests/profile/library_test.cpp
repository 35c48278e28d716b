// Tests shape profiles in the cache folder and in any other tier.
#include <thread>

#include "../store/artifact_folder.hpp"
#include "../store/memory_tier.hpp"
#include "sample_profile.hpp"
#include "warmgraph/profile/profile_library.hpp"

namespace warmgraph::profile::library_test {
namespace {

namespace fs = std::filesystem;
using test::empty_profile;
using test::prompt_of;
using test::sample_profile;

class ProfileFolder : public warmgraph::test::ArtifactFolder {
protected:
    ProfileFolder() : ArtifactFolder("profile") {}
    [[nodiscard]] static ProfileLibrary library_of(store::LocalStore& store)
    {
        return ProfileLibrary{store.tier(),
                              [&store](const store::ArtifactName& name) { return store.try_artifact_lock(name); }};
    }

    ProfileLibrary m_library = library_of(*m_store);
    Profile m_profile = sample_profile();
};

TEST_F(ProfileFolder, WhatIsMergedIsFound)
{
    EXPECT_EQ(m_library.find(m_profile.key).value(), std::nullopt);
    const auto merged = take(m_library.merge(m_profile));
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->profile, m_profile);
    EXPECT_EQ(*m_library.find(m_profile.key).value(), m_profile);
    ASSERT_EQ(files().size(), 1U) << "one file for a function, and no lock is left";
    EXPECT_EQ(files()[0].filename(), to_hex(m_profile.key) + ".profile");
}

TEST_F(ProfileFolder, TheSameCountsAreNotCountedTwice)
{
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    EXPECT_EQ(*m_library.find(m_profile.key).value(), m_profile);
}

TEST_F(ProfileFolder, WritersAtOnceLoseNothing)
{
    constexpr int k_writers = 6, k_rounds = 8;
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < k_writers; ++writer)
        writers.emplace_back([&, writer] {
            const auto store = open();
            const ProfileLibrary library = library_of(*store);
            Profile own = empty_profile();
            for (int round = 0; round < k_rounds; ++round) {
                count(own.parts[std::to_string(writer)], prompt_of(round));
                for (auto merged = library.merge(own); merged && !*merged; merged = library.merge(own))
                    std::this_thread::yield();
            }
        });
    writers.clear();
    const auto found = m_library.find(m_profile.key).value();
    ASSERT_TRUE(found);
    for (int round = 0; round < k_rounds; ++round)
        EXPECT_EQ(total(*found).at(prompt_of(round)), static_cast<std::uint64_t>(k_writers));
}

TEST_F(ProfileFolder, WhoeverFindsItLockedWritesNothing)
{
    const auto held = m_store->try_artifact_lock(Profiles::name_of(m_profile.key));
    ASSERT_TRUE(succeeded(held));
    const auto merged = take(m_library.merge(m_profile));
    EXPECT_FALSE(merged);
    EXPECT_EQ(m_library.find(m_profile.key).value(), std::nullopt);
    EXPECT_TRUE(m_store->check()->empty()) << "a lock is no finding";
}

TEST_F(ProfileFolder, DamageIsReplacedAndSaid)
{
    ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    overwrite("{\"format\": 1, \"parts\": 3}");
    EXPECT_TRUE(failed_with(m_library.find(m_profile.key), ErrorCode::corrupt));
    const auto merged = take(m_library.merge(m_profile));
    EXPECT_EQ(merged->replaced->code, ErrorCode::corrupt);
    EXPECT_EQ(*m_library.find(m_profile.key).value(), m_profile);
}

TEST_F(ProfileFolder, ANewerWarmgraphsFileStays)
{
    ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    overwrite("{\"format\": 2}");
    EXPECT_TRUE(failed_with(m_library.find(m_profile.key), ErrorCode::stale));
    EXPECT_TRUE(failed_with(m_library.merge(m_profile), ErrorCode::stale));
}

TEST_F(ProfileFolder, AFileWithTenMillionShapesIsNotRead)
{
    ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    fs::resize_file(files().at(0), 1ULL << 33); // makes the file sparse and very large
    EXPECT_TRUE(failed_with(m_library.find(m_profile.key), ErrorCode::corrupt));
    EXPECT_TRUE(succeeded(m_library.merge(m_profile)));
    EXPECT_EQ(*m_library.find(m_profile.key).value(), m_profile);
}

TEST_F(ProfileFolder, AFileUnderAnotherNameIsRefused)
{
    ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    Digest other = m_profile.key;
    other.bytes[31] ^= std::byte{1};
    fs::copy(files().at(0), files().at(0).parent_path() / (to_hex(other) + ".profile"));
    EXPECT_TRUE(failed_with(m_library.find(other), ErrorCode::corrupt));
}

TEST_F(ProfileFolder, AFolderThatIsReadIsNotWritten)
{
    ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    const auto reader = open({.access = store::StoreMode::read_only});
    const ProfileLibrary library = library_of(*reader);
    EXPECT_EQ(*library.find(m_profile.key).value(), m_profile);
    EXPECT_TRUE(failed_with(library.merge(m_profile), ErrorCode::permission_denied));
}

TEST_F(ProfileFolder, IsNoFindingOfACheckAndIsClearedAlone)
{
    ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    EXPECT_TRUE(m_store->check()->empty());
    const auto tuned = take(m_store->clear({.kinds = {store::ArtifactKind::tuned}}));
    EXPECT_EQ(tuned.files(), 0U);
    EXPECT_EQ(m_store->plan_clear({.kinds = {store::ArtifactKind::profiles}})->of(store::ArtifactKind::profiles).files,
              1U);
    const auto cleared = take(m_store->clear({.kinds = {store::ArtifactKind::profiles}}));
    EXPECT_EQ(cleared.of(store::ArtifactKind::profiles).files, 1U);
    EXPECT_GT(cleared.bytes(), 0U);
    EXPECT_TRUE(files().empty());
    ASSERT_TRUE(succeeded(m_library.merge(m_profile)));
    EXPECT_EQ(m_store->clear(store::ClearRequest::everything())->of(store::ArtifactKind::profiles).files, 1U);
}

TEST(ProfileTier, AnyTierWillDo)
{
    warmgraph::test::MemoryTier tier;
    const ProfileLibrary library{tier};
    ASSERT_TRUE(succeeded(library.merge(sample_profile())));
    EXPECT_EQ(*library.find(sample_profile().key).value(), sample_profile());
    const auto names = take(tier.list({.kind = store::ArtifactKind::profiles}));
    EXPECT_THAT(names, ElementsAre(store::Name{Profiles::name_of(sample_profile().key)}));
    EXPECT_TRUE(tier.list({.kind = store::ArtifactKind::tuned})->empty());
}

} // namespace
} // namespace warmgraph::profile::library_test
