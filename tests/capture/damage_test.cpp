// A damaged, foreign or full cache costs time, but results stay right.
#include "cache/cache_impl.hpp"
#include "facade_fixture.hpp"
#include "faulty_file_system.hpp"
#include "reseal.hpp"
#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::test::damage_test {
namespace {

class Damage : public FacadeTest {
protected:
    Report call(Policy policy = Policy::read_write)
    {
        Cache cache{options(policy)};
        Function f = add_one(cache);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(1)));
        faults = cache.statistics().cache_faults;
        return f.report();
    }
    static void write(const std::filesystem::path& path, ByteView bytes)
    {
        const auto* const begin = reinterpret_cast<const char*>(bytes.data());
        write_file(path, {begin, begin + bytes.size()});
    }
    static Bytes read_bytes(const std::filesystem::path& path)
    {
        const auto chars = file_bytes(path);
        const ByteView bytes = as_bytes({chars.data(), chars.size()});
        return {bytes.begin(), bytes.end()};
    }
    /// Changes the entry at `path`. The changed file can still be decoded.
    static void forge(const std::filesystem::path& path, const std::function<void(cachefmt::Entry&)>& change)
    {
        const auto folder = path.parent_path();
        const cachefmt::EntryKey key{{folder.parent_path().parent_path().filename().string(),
                                      folder.parent_path().filename().string(), folder.filename().string()},
                                     *digest_from_hex(path.stem().string())};
        auto entry = take(cachefmt::decode(read_bytes(path), key));
        change(entry);
        write(path, take(cachefmt::encode(entry)));
    }
    std::uint64_t faults = 0;
};

TEST_F(Damage, ATruncatedOrFlippedEntryIsQuarantinedAndReplacedInTheSameRun)
{
    call();
    const auto path = entries().at(0);
    const auto good = file_bytes(path);
    auto flipped = good;
    flipped[flipped.size() / 2] ^= 4;
    for (const auto& bad : {std::vector<char>(good.begin(), good.begin() + 100), flipped, std::vector<char>{}}) {
        write_file(path, bad);
        const Report report = call();
        EXPECT_EQ(report.outcome, Outcome::recorded) << report.reason;
        EXPECT_EQ(call().outcome, Outcome::replayed) << "the run before replaced it";
    }
}

TEST_F(Damage, AnotherKeysBytesAreRefused)
{
    call();
    const auto path = entries().at(0);
    {
        Cache cache{options()};
        Function g = add_one(cache, "other");
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        g({{"x", x}, {"y", y}});
    }
    const auto all = entries();
    const auto other_path =
        *std::ranges::find_if(all, [](const auto& file) { return file.parent_path().filename() == "other"; });
    write_file(path, file_bytes(other_path));
    EXPECT_EQ(call().outcome, Outcome::recorded);
    EXPECT_EQ(call().outcome, Outcome::replayed);
}

/// A flipped bit in the version does not make the entry one of a newer warmgraph, because the seal is wrong. A sealed
/// entry with another version does not either, because the key contains the format.
TEST_F(Damage, AnotherFormatUnderThisKeyIsAMissWithAReasonAndIsReplaced)
{
    call();
    const auto path = entries().at(0);
    auto flipped = file_bytes(path);
    flipped[8] ^= 64; // byte 8 is the format version (docs/format.md)
    write_file(path, flipped);
    const Report looked = call(Policy::read_only);
    EXPECT_EQ(looked.outcome, Outcome::eager);
    EXPECT_THAT(looked.reason, HasSubstr("the first bytes do not match their digest"));
    EXPECT_EQ(file_bytes(path), flipped) << "nothing is changed by a reader";
    EXPECT_EQ(call().outcome, Outcome::recorded);
    EXPECT_EQ(call().outcome, Outcome::replayed);

    Bytes newer = read_bytes(path);
    poke(newer, envelope_at::version, std::uint32_t{99});
    reseal_marks(newer);
    write(path, newer);
    EXPECT_THAT(call(Policy::read_only).reason, HasSubstr("format 99"));
    EXPECT_EQ(call().outcome, Outcome::recorded);
    EXPECT_EQ(call().outcome, Outcome::replayed);
}

TEST_F(Damage, AnEntryThatLiesAboutTheSizeOfItsImagesIsRecordedAgain)
{
    call();
    const auto path = entries().at(0);
    for (const std::int64_t lie : {-1, 1, -1000}) {
        forge(path, [lie](auto& entry) { entry.graph.images[0].size += static_cast<std::uint64_t>(lie); });
        const Report looked = call(Policy::read_only);
        EXPECT_EQ(looked.outcome, Outcome::eager);
        EXPECT_THAT(looked.reason, HasSubstr("image")) << lie;
        EXPECT_EQ(call().outcome, Outcome::recorded);
        EXPECT_EQ(call().outcome, Outcome::replayed);
    }
}

/// Calls bind memory by position. If a graph had other regions than the function, it would read and write wrong memory.
TEST_F(Damage, AnEntryWithOtherRegionsThanTheFunctionIsRemovedAndRecordedAgain)
{
    using cachefmt::Graph;
    using cachefmt::RegionKind;
    const std::vector<std::function<void(Graph&)>> forgeries{
        [](Graph& graph) { graph.regions[1].kind = RegionKind::arena; },
        [](Graph& graph) { graph.regions[1].name = "z"; },
        [](Graph& graph) { std::swap(graph.regions[0], graph.regions[1]); },
        [](Graph& graph) { graph.regions.push_back({"more", RegionKind::input, 4, 4, {}}); },
        [](Graph& graph) { // the changed graph has only y, and its work uses only y
            graph.regions.erase(graph.regions.begin());
            for (auto& param : std::get<cachefmt::KernelNode>(graph.nodes[0]).params)
                for (auto& slot : param.slots) slot.target = 0;
        }};
    for (const auto& change : forgeries) {
        std::filesystem::remove_all(dir.path() / "cache");
        call();
        forge(entries().at(0), [&change](auto& entry) { change(entry.graph); });
        EXPECT_EQ(call(Policy::read_only).outcome, Outcome::eager);
        const Report report = call();
        EXPECT_EQ(report.outcome, Outcome::recorded) << report.reason;
        EXPECT_EQ(call().outcome, Outcome::replayed);
    }
}

TEST_F(Damage, AMissingImageIsRecordedAgain)
{
    call();
    std::filesystem::remove_all(dir.path() / "cache" / "images");
    const Report report = call();
    EXPECT_EQ(report.outcome, Outcome::recorded);
    EXPECT_THAT(report.reason, HasSubstr("image"));
    EXPECT_GE(faults, 1U);
    EXPECT_EQ(call().outcome, Outcome::replayed);
}

/// An entry that can be decoded but not restored is moved away, so that other processes do not try it.
TEST_F(Damage, AnEntryWhoseImageIsGoneIsSetAsideByWhoMayPublish)
{
    call();
    std::filesystem::remove_all(dir.path() / "cache" / "images");
    EXPECT_EQ(call(Policy::read_only).outcome, Outcome::eager);
    EXPECT_EQ(entries().size(), 1U) << "a reader changes nothing";
    EXPECT_EQ(call().outcome, Outcome::recorded);
    EXPECT_EQ(files(".reason").size(), 1U) << "and why is beside it";
}

/// Two recordings that differ make a function refused. An entry that cannot be replayed does not count as a recording.
TEST_F(Damage, AnEntryThatCannotBeRestoredIsNoWitnessAgainstItsRecording)
{
    call();
    forge(entries().at(0),
          [](auto& entry) { // without its image, the entry is valid but cannot be replayed
              entry.graph.images[0].digest.bytes[0] ^= std::byte{1};
              entry.graph.images[0].origin.bytes[0] ^= std::byte{1};
          });
    const Report refreshed = call(Policy::refresh);
    EXPECT_EQ(refreshed.outcome, Outcome::recorded) << refreshed.reason;
    EXPECT_EQ(call().outcome, Outcome::replayed);
    EXPECT_EQ(files(".reason").size(), 1U) << "it was set aside";
}

TEST_F(Damage, ADamagedImageIsRecordedAgain)
{
    call();
    for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "cache" / "images")) {
        if (!item.is_regular_file()) continue;
        auto bytes = file_bytes(item.path());
        bytes[bytes.size() / 2] ^= 1;
        write_file(item.path(), bytes);
    }
    EXPECT_EQ(call().outcome, Outcome::recorded);
    EXPECT_EQ(call().outcome, Outcome::replayed);
}

TEST_F(Damage, AFullDiskAtAnyPointLeavesTheResultAndAUsableCache)
{
    int unpublished = 0;
    for (std::uint64_t nth = 1; nth < 200; ++nth) {
        std::filesystem::remove_all(dir.path() / "cache");
        FaultyFileSystem disk;
        disk.fail_at(nth, ErrorCode::no_space, FaultyFileSystem::Lasts::for_ever);
        Cache cache = CacheAccess::open(options(), disk);
        Function f = add_one(cache);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        const Outcome outcome = f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(1))) << "operation " << nth;
        const std::string reason = f.report().reason;
        EXPECT_EQ(f({{"x", x}, {"y", y}}), outcome == Outcome::recorded ? Outcome::replayed : outcome);
        if (disk.injected() == 0) {
            EXPECT_GT(nth, 5U) << "the fault was never reached";
            EXPECT_GT(unpublished, 0) << "no recording was kept from being published";
            return;
        }
        if (reason.find("not published") != std::string::npos) {
            ++unpublished;
            EXPECT_EQ(outcome, Outcome::recorded) << "a recording stays usable in its process";
            EXPECT_GE(cache.statistics().cache_faults, 1U);
            EXPECT_TRUE(entries().empty());
        }
        const Report after = call();
        EXPECT_TRUE(after.outcome == Outcome::recorded || after.outcome == Outcome::replayed)
            << "operation " << nth << ": " << after.reason;
    }
    FAIL() << "more than 200 file operations in one recording";
}

} // namespace
} // namespace warmgraph::test::damage_test
