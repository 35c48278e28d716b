// Artifacts that a process made or used are loaded into another folder; bundles are read without unpacking them.
#include "facade_fixture.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::test::artifacts_test {
namespace {

class Artifacts : public FacadeTest {
protected:
    Artifacts() { log().set_level(spdlog::level::off); }
    CacheOptions elsewhere(Policy policy = Policy::read_write) const
    {
        CacheOptions result = options(policy);
        result.cache_dir = (dir.path() / "elsewhere").string();
        return result;
    }
    Outcome call(Cache& cache, const std::string& name = "add_one") const
    {
        Function function = add_one(cache, name);
        const Buffer x = floats(1), y = floats(0);
        const Outcome outcome = function({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y)[3], 5.0f);
        return outcome;
    }
    CacheArtifacts recorded() const
    {
        Cache cache{options()};
        EXPECT_EQ(call(cache), Outcome::recorded);
        return cache.save_cache_artifacts().value();
    }
    std::string written(const std::vector<std::byte>& bytes, const std::string& name = "cache.wgb") const
    {
        const auto path = dir.path() / name;
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        std::filesystem::permissions(path, std::filesystem::perms(0600));
        return path.string();
    }
};

TEST_F(Artifacts, AreNoneWhereNothingWasMadeOrUsed)
{
    static_cast<void>(recorded());
    Cache cache{options()};
    EXPECT_FALSE(cache.save_cache_artifacts()) << "what others recorded lies in the folder, and nobody used it";
    EXPECT_EQ(call(cache), Outcome::replayed);
    const auto saved = cache.save_cache_artifacts();
    ASSERT_TRUE(saved) << "of a hit";
    EXPECT_EQ(saved->info.kinds[0].kind, "entries");
    EXPECT_EQ(saved->info.kinds[0].count, 1U);
    EXPECT_GT(saved->info.kinds[0].seconds, 0);
    EXPECT_THAT(saved->info.kinds[0].names[0], HasSubstr("/add_one/"));
    EXPECT_EQ(saved->info.kinds[1].kind, "images");
    EXPECT_THAT(saved->info.skipped, IsEmpty());
}

TEST_F(Artifacts, OfACompressedFolderAreTheSame)
{
    CacheOptions packed = options();
    packed.compression = {{ArtifactKind::entries, {.level = 9, .above = 0}},
                          {ArtifactKind::images, {.level = 3, .above = 0}},
                          {ArtifactKind::constants, {.level = 3, .above = 0}}};
    CacheArtifacts saved;
    {
        Cache cache{packed};
        EXPECT_EQ(call(cache), Outcome::recorded);
        saved = cache.save_cache_artifacts().value();
    }
    std::uintmax_t frames = 0;
    for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path())) {
        if (!item.is_regular_file() || item.path().string().find("/images/") == std::string::npos) continue;
        std::uint32_t magic = 0;
        std::ifstream(item.path(), std::ios::binary).read(reinterpret_cast<char*>(&magic), sizeof magic);
        frames += magic == 0xFD2FB528;
    }
    EXPECT_GT(frames, 0U);
    Cache same{options()};
    EXPECT_EQ(call(same), Outcome::replayed) << "whatever is set";
    Cache cache{elsewhere()};
    EXPECT_EQ(cache.load_cache_artifacts(device, saved.bytes).kinds.size(), 3U);
    EXPECT_EQ(call(cache), Outcome::replayed);
    packed.compression = {{ArtifactKind::images, {.level = 20}}};
    EXPECT_TRUE(failed_with(thrown_by([&] { Cache wrong{packed}; }), ErrorCode::invalid_argument,
                            "compression of images has the level 20: expected 0 (not compressed) to 19"));
    packed.compression = {{ArtifactKind::compiled, {.level = 3}}};
    EXPECT_TRUE(failed_with(thrown_by([&] { Cache wrong{packed}; }), ErrorCode::invalid_argument,
                            "compression has the kind 'compiled': expected entries, images or constants"));
}

TEST_F(Artifacts, ThatAreDamagedAreATypedError)
{
    CacheArtifacts saved = recorded();
    Cache cache{elsewhere()};
    const auto code_of = [&](std::span<const std::byte> bytes) {
        const auto error = thrown_by([&] { static_cast<void>(cache.load_cache_artifacts(device, bytes)); });
        return error ? std::optional(error->code()) : std::nullopt;
    };
    EXPECT_EQ(code_of({}), ErrorCode::corrupt);
    EXPECT_EQ(code_of(std::span(saved.bytes).first(saved.bytes.size() - 1)), ErrorCode::corrupt);
    saved.bytes[300] ^= std::byte{1};
    EXPECT_EQ(code_of(saved.bytes), std::nullopt) << "one member is damaged: the rest is looked at";
    EXPECT_EQ(cache.load_cache_artifacts(device, saved.bytes).skipped.size(), 1U) << "the entry, for want of it";
    EXPECT_EQ(call(cache), Outcome::recorded) << "and recording works";
    Cache off{elsewhere(Policy::off)};
    EXPECT_THAT(message_of(thrown_by([&] { static_cast<void>(off.load_cache_artifacts(device, saved.bytes)); })),
                HasSubstr("caching is off"));
}

TEST_F(Artifacts, AreCheckedBeforeTheyAreOpened)
{
    const std::string file = written(recorded().bytes);
    const Cache cache{elsewhere()};
    const BundleCheck check = cache.check_bundle(file, device);
    EXPECT_THAT(check.environment, HasSubstr("backend opencl"));
    EXPECT_EQ(check.environment_key.size(), 12U);
    EXPECT_EQ(check.environment_here, check.environment_key);
    EXPECT_EQ(check.verdict, FitVerdict::fits);
    ASSERT_EQ(check.entries.size(), 2U) << "the graph and the compiled program";
    for (const BundledEntry& entry : check.entries) EXPECT_EQ(entry.verdict, FitVerdict::fits) << entry.detail;
    EXPECT_EQ(thrown_by([&] { static_cast<void>(cache.check_bundle(file + "x", device)); })->code(),
              ErrorCode::not_found);
}

TEST_F(Artifacts, OfABundleAreReadWhereTheyLie)
{
    CacheOptions layered = elsewhere();
    layered.bundles = {written(recorded().bytes)};
    Cache cache{layered};
    EXPECT_EQ(call(cache), Outcome::replayed);
    std::size_t unpacked = 0;
    for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "elsewhere"))
        unpacked += item.path().extension() == ".wg" || item.path().string().find("/images/") != std::string::npos;
    EXPECT_EQ(unpacked, 0U);
    EXPECT_EQ(call(cache, "another"), Outcome::recorded) << "the folder is written as ever";
    EXPECT_TRUE(cache.save_cache_artifacts()->info.kinds[0].count == 2) << "what it hit in the bundle, too";
    Cache require{[&] {
        CacheOptions strict = layered;
        strict.policy = Policy::require_hit;
        return strict;
    }()};
    EXPECT_EQ(call(require), Outcome::replayed);
}

TEST_F(Artifacts, OfABundleServeWithoutAFolder)
{
    CacheOptions layered = options(Policy::require_hit);
    layered.bundles = {written(recorded().bytes)};
    layered.cache_dir = (dir.path() / "nowhere").string();
    Cache cache{layered};
    EXPECT_EQ(cache.disabled_reason(), "");
    EXPECT_EQ(call(cache), Outcome::replayed);
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "nowhere"));
}

TEST_F(Artifacts, OfABundleThatCannotBeUsedCostNothingElse)
{
    const auto bytes = recorded().bytes;
    const std::string good = written(bytes), open_to_all = written(bytes, "writable.wgb");
    std::filesystem::permissions(open_to_all, std::filesystem::perms(0666));
    const std::string cut = written({bytes.begin(), bytes.begin() + 1000}, "cut.wgb");
    CacheOptions layered = elsewhere();
    layered.bundles = {cut, open_to_all, (dir.path() / "none.wgb").string()};
    Cache cache{layered};
    EXPECT_EQ(cache.statistics().cache_faults, 3U);
    EXPECT_EQ(call(cache), Outcome::recorded);
    layered.bundles.push_back(good);
    layered.cache_dir = (dir.path() / "third").string();
    Cache rest{layered};
    EXPECT_EQ(rest.statistics().cache_faults, 3U);
    EXPECT_EQ(call(rest), Outcome::replayed);
}

TEST_F(Artifacts, OfABundleThatIsDamagedAreAMissAndRecorded)
{
    auto bytes = recorded().bytes;
    for (std::size_t at = 288; at < 400; ++at) bytes[at] ^= std::byte{1}; // damages the image (the first member)
    CacheOptions layered = elsewhere();
    layered.bundles = {written(bytes)};
    Cache cache{layered};
    EXPECT_EQ(call(cache), Outcome::recorded);
    EXPECT_GE(cache.statistics().cache_faults, 1U);
    Cache next{layered};
    EXPECT_EQ(call(next), Outcome::replayed) << "of the folder";
}

TEST_F(Artifacts, OfABundleThatSomebodyTruncatesAreAMiss)
{
    const auto bytes = recorded().bytes;
    CacheOptions layered = elsewhere();
    layered.bundles = {written(bytes)};
    Cache cache{layered};
    std::filesystem::resize_file(layered.bundles[0], 400);
    EXPECT_EQ(call(cache), Outcome::recorded);
}

} // namespace
} // namespace warmgraph::test::artifacts_test
