// Artifacts of one process are used from another folder and from a bundle, through the public interface on PoCL.
#include <fstream>

#include "bundle_of_process.hpp"

namespace warmgraph::test::carried_test {
namespace {

using Carried = ProcessBundleTest;

TEST_F(Carried, SavesEveryKindThatItMadeAndNothingWhereThereIsNothing)
{
    Cache cache{in("cache")};
    EXPECT_EQ(cache.save_cache_artifacts(), std::nullopt);
    work(cache);
    const auto saved = cache.save_cache_artifacts();
    ASSERT_TRUE(saved);
    EXPECT_THAT(kinds_of(saved->info), ElementsAre("entries", "images", "compiled", "tuned", "profiles"));
    EXPECT_THAT(saved->info.skipped, IsEmpty());
    EXPECT_EQ(kind(saved->info, "compiled")->count, 3U) << "the function's, the default's and the winner's";
    EXPECT_GT(kind(saved->info, "compiled")->seconds, 0);
    EXPECT_GT(kind(saved->info, "compiled")->bytes, 0U);
    EXPECT_EQ(kind(saved->info, "tuned")->count, 2U) << "the kernel's, and its module's";
    EXPECT_GT(kind(saved->info, "tuned")->seconds, 0);
    EXPECT_EQ(kind(saved->info, "profiles")->count, 1U);
}

TEST_F(Carried, SavesEveryKindThatItHit)
{
    {
        Cache cache{in("cache")};
        work(cache);
    }
    Cache cache{in("cache")};
    work(cache, "other");
    EXPECT_EQ(cache.statistics().of(ArtifactKind::compiled).made, 0U);
    const auto saved = cache.save_cache_artifacts();
    ASSERT_TRUE(saved);
    EXPECT_THAT(kinds_of(saved->info), ElementsAre("entries", "images", "compiled", "tuned", "profiles"));
    EXPECT_THAT(saved->info.skipped, IsEmpty());
}

TEST_F(Carried, IsLoadedIntoAnotherFolderWhichThenCompilesAndTunesNothing)
{
    const auto saved = saved_work();
    Cache cache{in("other")};
    const CacheInfo loaded = cache.load_cache_artifacts(device, saved.bytes);
    EXPECT_THAT(kinds_of(loaded), ElementsAre("entries", "images", "compiled", "tuned", "profiles"));
    EXPECT_THAT(loaded.skipped, IsEmpty());
    expect_warm(cache);
    EXPECT_EQ(call_of_length(cache, 5), Outcome::replayed) << "it was padded to 17, which the profile tells";
    const CacheInfo again = cache.load_cache_artifacts(device, saved.bytes);
    EXPECT_THAT(kinds_of(again), IsEmpty()) << "nothing is replaced";
    EXPECT_EQ(again.there.size(), 8U);
}

TEST_F(Carried, IsReadWhereItLiesAndNothingIsUnpacked)
{
    write_bundle(saved_work().bytes);
    CacheOptions options = in("other");
    options.bundles = {bundle_file()};
    {
        Cache cache{options};
        expect_warm(cache);
        EXPECT_EQ(call_of_length(cache, 5), Outcome::replayed) << "it was padded to 17, which the profile tells";
    }
    EXPECT_THAT(files_in("other", ".best_config"), IsEmpty());
    EXPECT_THAT(files_in("other", ".compiled"), IsEmpty());
}

TEST_F(Carried, ServesWithoutAFolder)
{
    write_bundle(saved_work().bytes);
    CacheOptions options = in("cache/CACHEDIR.TAG"); // this path is a file, not a folder
    options.bundles = {bundle_file()};
    Cache cache{options};
    expect_warm(cache);
    const auto saved = cache.save_cache_artifacts();
    ASSERT_TRUE(saved);
    EXPECT_NE(kind(saved->info, "compiled"), nullptr) << "what was hit in a bundle is saved again";
    EXPECT_NE(kind(saved->info, "tuned"), nullptr);
}

TEST_F(Carried, IsAskedWhetherItFits)
{
    write_bundle(saved_work().bytes);
    const BundleCheck check = Cache{in("other")}.check_bundle(bundle_file(), device);
    EXPECT_EQ(check.entries.size(), 7U)
        << "an entry, three programs, a kernel's and a module's configurations, a profile";
    EXPECT_THAT(check.entries, Each(Field(&BundledEntry::verdict, FitVerdict::fits)));
}

TEST_F(Carried, IsCompiledAgainWhereItIsDamagedAndCountsAsAFault)
{
    auto bytes = saved_work().bytes;
    damage_all_of(bytes, store::ArtifactKind::compiled);
    write_bundle(bytes);
    CacheOptions options = in("other");
    options.bundles = {bundle_file()};
    Cache cache{options};
    work(cache, "other");
    EXPECT_GE(cache.statistics().of(ArtifactKind::compiled).made, 1U);
    EXPECT_GE(cache.statistics().cache_faults, 1U);
    Cache loading{in("third")};
    EXPECT_THAT(loading.load_cache_artifacts(device, bytes).skipped,
                Contains(Field(&SkippedArtifact::why, HasSubstr("digest does not match"))));
}

} // namespace
} // namespace warmgraph::test::carried_test
