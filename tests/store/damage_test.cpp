// Files that are damaged, foreign or from a newer version are refused, set aside with the reason, and replaced in the
// same run.
#include <cstdlib>
#include <functional>
#include <random>
#include <set>

#include <sys/stat.h>

#include "random_graph.hpp"
#include "reseal.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::damage_test {
namespace {

class Damage : public StoreTest {
protected:
    Damage() { m_store = open(); }
    /// Expects that the file is refused with this code and is in quarantine with the reason, and that the entry can be
    /// published again.
    void expect_refused_and_replaced(const Entry& entry, ErrorCode code)
    {
        const std::size_t before = quarantined().size();
        EXPECT_TRUE(failed_with(m_store->entry(entry.header.key), code, to_hex(entry.header.key.guards_digest)));
        EXPECT_EQ(quarantined().size(), before + 1);
        EXPECT_FALSE(fs::exists(fs::symlink_status(path_of(entry.header.key))));
        EXPECT_FALSE(m_store->entry(entry.header.key).value()) << "now it is a plain miss";
        ASSERT_TRUE(succeeded(m_store->publish(entry)));
        EXPECT_EQ(m_store->entry(entry.header.key).value(), entry);
    }

    std::unique_ptr<LocalStore> m_store;
    Entry m_entry = make_entry(k_decode);
    fs::path m_path = path_of(m_entry.header.key);
};

TEST_F(Damage, AFlippedBitAnywhereIsRefusedAndReplaced)
{
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    const std::uint64_t size = fs::file_size(m_path);
    for (std::uint64_t byte = 16; byte < size; byte += 37) { // byte 16 comes after magic, version and kind
        flip(m_path, byte);
        expect_refused_and_replaced(m_entry, ErrorCode::corrupt);
    }
}

TEST_F(Damage, ATruncatedEmptyOrLongerFileIsRefusedAndReplaced)
{
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    const std::uint64_t size = fs::file_size(m_path);
    for (const std::uint64_t length :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{351}, size / 2, size - 1, size + 1}) {
        fs::resize_file(m_path, length);
        expect_refused_and_replaced(m_entry, ErrorCode::corrupt);
    }
}

TEST_F(Damage, AFileOverTheCapIsRefusedUnread)
{
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    fs::resize_file(m_path, 1ULL << 40); // makes a sparse file: reading it would take all the machine's memory
    expect_refused_and_replaced(m_entry, ErrorCode::corrupt);
}

TEST_F(Damage, LinksPipesAndFoldersInAnEntrysPlaceAreRefusedAndReplaced)
{
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    fs::rename(m_path, m_dir.path() / "elsewhere");
    fs::create_symlink(m_dir.path() / "elsewhere", m_path);
    expect_refused_and_replaced(m_entry, ErrorCode::corrupt);
    fs::remove(m_path);
    ASSERT_EQ(::mkfifo(m_path.c_str(), 0600), 0);
    EXPECT_FALSE(m_store->header(m_entry.header.key));
    expect_refused_and_replaced(m_entry, ErrorCode::corrupt);
    fs::remove(m_path);
    fs::create_directories(m_path / "below");
    expect_refused_and_replaced(m_entry, ErrorCode::corrupt);
    EXPECT_TRUE(fs::exists(m_dir.path() / "elsewhere")) << "what a link points to is none of our business";
}

TEST_F(Damage, AnotherKeysBytesAreRefusedAndReplaced)
{
    const Entry other = make_entry(k_decode, 1);
    const Entry elsewhere = make_entry(k_prompt);
    for (const Entry& source : {other, elsewhere}) {
        ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
        ASSERT_TRUE(succeeded(m_store->publish(source)));
        fs::copy_file(path_of(source.header.key), m_path, fs::copy_options::overwrite_existing);
        EXPECT_TRUE(failed_with(m_store->header(m_entry.header.key), ErrorCode::stale));
        expect_refused_and_replaced(m_entry, ErrorCode::stale);
        EXPECT_EQ(m_store->entry(source.header.key).value(), source) << "the other one is untouched";
    }
}

/// Promise F1: flips each bit of the envelope, and some of the other bits. A lookup and `check` must find each flip.
TEST_F(Damage, EveryBitOfTheEnvelopeIsFoundByCheckAndHealed)
{
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    const std::string good = text_of(m_path);
    const auto reader = open({.access = store::StoreMode::read_only});
    const std::size_t envelope = cachefmt::k_envelope_bytes;
    for (std::size_t bit = 0; bit < 8 * good.size(); bit += bit < 8 * envelope ? 1 : 41) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        write(m_path, bad);
        ASSERT_FALSE(reader->header(m_entry.header.key).has_value() && reader->entry(m_entry.header.key).has_value())
            << "bit " << bit;
        const auto found = reader->check().value();
        ASSERT_EQ(found.size(), 1U) << "bit " << bit;
        ASSERT_TRUE(found[0].error.code == ErrorCode::corrupt || found[0].error.code == ErrorCode::stale);
        if (bit % 8 != bit / 8 % 8) continue; // one bit of each byte, because quarantine writes and syncs two files
        ASSERT_FALSE(m_store->entry(m_entry.header.key)) << "bit " << bit;
        ASSERT_FALSE(fs::exists(m_path)) << "bit " << bit << " of a damaged entry leaves it in place";
    }
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    EXPECT_EQ(text_of(m_path), good);
    EXPECT_TRUE(m_store->check().value().empty());
}

/// The number of random flips. A long run can set it in $WARMGRAPH_TEST_FLIPS.
int flips()
{
    const char* const given = std::getenv("WARMGRAPH_TEST_FLIPS");
    return given != nullptr ? std::atoi(given) : 2000;
}

/// Promise F1: up to four bits are flipped at once, anywhere in the file.
TEST_F(Damage, RandomFlipsAreNeverRead)
{
    std::mt19937_64 random(test_seed());
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    const std::string good = text_of(m_path);
    const auto reader = open({.access = store::StoreMode::read_only});
    for (int i = 0; i < flips(); ++i) {
        std::string bad = good;
        std::set<std::size_t> bits;
        for (std::uint64_t count = random() % 4 + 1; bits.size() < count;) bits.insert(random() % (8 * good.size()));
        for (const std::size_t bit : bits) bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        write(m_path, bad);
        ASSERT_FALSE(reader->entry(m_entry.header.key).has_value()) << "bits " << testing::PrintToString(bits);
    }
}

/// A file that a newer warmgraph wrote and sealed, in a newer format.
class NewerFormat : public Damage {
protected:
    void SetUp() override
    {
        ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
        const std::string text = text_of(m_path);
        Bytes bytes(as_bytes(text).begin(), as_bytes(text).end());
        poke(bytes, envelope_at::version, cachefmt::k_format_version + 1);
        reseal(bytes, m_entry.header.key);
        newer = as_text(bytes);
        write(m_path, newer);
    }
    std::string newer;
};

TEST_F(NewerFormat, IsLeftAloneByWhoeverFindsIt)
{
    const auto before = snapshot(m_root);
    const auto variants = m_store->variants(k_decode).value();
    ASSERT_EQ(variants.size(), 1U);
    EXPECT_TRUE(failed_with(variants[0].header, ErrorCode::stale, "format"));
    EXPECT_TRUE(m_store->check().value().empty()) << "it is not damaged";
    EXPECT_TRUE(m_store->repair().value().empty());
    EXPECT_EQ(snapshot(m_root), before);
}

TEST_F(Damage, AnImageIsKeptWhereTheEntryLiesAboutItsSize)
{
    const Bytes code = image_of("code of some length");
    ASSERT_TRUE(m_store->publish_image(code).value());
    EXPECT_FALSE(m_store->image(sha256(code), 1).value()) << "larger than was asked for";
    EXPECT_EQ(m_store->image(sha256(code), code.size()).value(), code) << "others need it";
    EXPECT_TRUE(quarantined().empty());
}

TEST_F(NewerFormat, IsDamageUnderAKeyThatSaysAnother)
{
    EXPECT_TRUE(failed_with(m_store->header(m_entry.header.key), ErrorCode::stale, "format"));
    expect_refused_and_replaced(m_entry, ErrorCode::stale);
    write(m_path, newer);
    EXPECT_TRUE(succeeded(m_store->publish(m_entry))) << "and is overwritten";
    EXPECT_EQ(m_store->entry(m_entry.header.key).value(), m_entry);
}

TEST_F(NewerFormat, ThatIsNotSealedIsDamage)
{
    std::string torn = newer;
    torn[200] = static_cast<char>(torn[200] ^ 1); // after the first bytes, only a newer version can find the damage
    write(m_path, torn);
    EXPECT_TRUE(m_store->check().value().empty());
    for (const std::size_t byte : {8U, 9U, 12U, 20U, 44U, 150U}) { // of version, kind, sizes, flags and seal
        torn = newer;
        torn[byte] = static_cast<char>(torn[byte] ^ 16);
        write(m_path, torn);
        const auto found = m_store->check().value();
        ASSERT_EQ(found.size(), 1U) << byte;
        EXPECT_EQ(found[0].error.code, ErrorCode::corrupt) << byte;
    }
    EXPECT_EQ(m_store->repair().value().size(), 1U);
    EXPECT_FALSE(fs::exists(m_path));
}

TEST_F(Damage, AnOlderFormatIsSetAside)
{
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    std::string text = snapshot(folder()).begin()->second;
    text[8] = 0;
    write(m_path, text);
    expect_refused_and_replaced(m_entry, ErrorCode::stale);
}

TEST_F(Damage, TheReasonLiesBesideTheFile)
{
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    flip(m_path, 300);
    EXPECT_FALSE(m_store->entry(m_entry.header.key));
    const auto names = names_in(m_root / "quarantine");
    ASSERT_EQ(names.size(), 2U);
    EXPECT_THAT(names[0], EndsWith("-" + m_path.filename().string()));
    EXPECT_EQ(names[1], names[0] + ".reason");
    const auto files = snapshot(m_root / "quarantine");
    EXPECT_THAT(files.at(names[1]), HasSubstr(m_path.lexically_relative(m_root).string()));
    EXPECT_THAT(files.at(names[1]), HasSubstr("corrupt"));
}

TEST_F(Damage, QuarantineDoesNotGrowForEver)
{
    for (int i = 0; i < 80; ++i) {
        write(m_path, "damaged " + std::to_string(i));
        EXPECT_FALSE(m_store->entry(m_entry.header.key));
    }
    EXPECT_EQ(quarantined().size(), 64U);
    EXPECT_EQ(names_in(m_root / "quarantine").size(), 128U);
}

TEST_F(Damage, VariantsCarryTheirErrorAndStayWhereTheyAre)
{
    const Entry good = make_entry(k_decode, 1);
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    ASSERT_TRUE(succeeded(m_store->publish(good)));
    flip(m_path, 200);
    const auto before = snapshot(m_root);
    const auto variants = m_store->variants(k_decode).value();
    ASSERT_EQ(variants.size(), 2U);
    for (const auto& variant : variants) {
        if (variant.guards_digest == good.header.key.guards_digest) {
            EXPECT_TRUE(succeeded(variant.header));
        } else {
            EXPECT_TRUE(failed_with(variant.header, ErrorCode::corrupt));
        }
    }
    EXPECT_EQ(snapshot(m_root), before);
}

TEST_F(Damage, ADamagedImageIsMissingAndIsReplaced)
{
    const Bytes image = image_of("device code");
    for (const std::string& content :
         {std::string("device codf"), std::string(), std::string("device code and more")}) {
        ASSERT_TRUE(succeeded(m_store->publish_image(image)));
        write(path_of(image), content);
        EXPECT_FALSE(m_store->image(sha256(image)).value());
        EXPECT_FALSE(fs::exists(path_of(image)));
        EXPECT_TRUE(m_store->publish_image(image).value());
        EXPECT_EQ(m_store->image(sha256(image)).value(), image);
    }
    EXPECT_EQ(quarantined().size(), 3U);
}

TEST_F(Damage, PublishingAnImageReplacesADamagedOne)
{
    const Bytes image = image_of("device code");
    ASSERT_TRUE(m_store->publish_image(image).value());
    write(path_of(image), "device codf");
    EXPECT_TRUE(m_store->publish_image(image).value());
    EXPECT_EQ(m_store->image(sha256(image)).value(), image);
}

/// Replaces the file after it was read and before it is set aside, as another process may do.
class ReplacingFiles final : public ForwardingFileSystem {
public:
    std::function<void()> after_read;

private:
    Result<std::optional<FileContent>> read_in(FileSystem& inner, const Path& path, std::uint64_t limit) override
    {
        auto content = inner.read(path, limit);
        if (after_read && path.extension() == ".wg") std::exchange(after_read, nullptr)();
        return content;
    }
};

TEST_F(Damage, AFileThatWasReplacedMeanwhileIsNotSetAside)
{
    ReplacingFiles files;
    const auto second = open({}, files);
    ASSERT_TRUE(succeeded(m_store->publish(m_entry)));
    flip(m_path, 300);
    files.after_read = [&] { ASSERT_TRUE(succeeded(m_store->publish(make_entry(k_decode, 0, "a good one")))); };
    EXPECT_TRUE(failed_with(second->entry(m_entry.header.key), ErrorCode::corrupt));
    EXPECT_TRUE(quarantined().empty());
    EXPECT_EQ((*second->entry(m_entry.header.key))->header.info.verification, "a good one");
}

/// Notes the paths that are read.
class WatchedFiles final : public ForwardingFileSystem {
public:
    std::vector<Path> read_paths; ///< paths relative to the folder that was opened

private:
    Result<std::optional<FileContent>> read_in(FileSystem& inner, const Path& path, std::uint64_t limit) override
    {
        read_paths.push_back(path);
        return inner.read(path, limit);
    }
};

TEST_F(Damage, AFileOverTheCapIsNotReadAtAll)
{
    WatchedFiles files;
    const auto second = open({.image_bytes = 8}, files);
    const Bytes image = image_of("nine bytes");
    EXPECT_TRUE(m_store->publish_image(image).value());
    EXPECT_FALSE(second->image(sha256(image)).value());
    EXPECT_THAT(files.read_paths, Not(Contains(path_of(image).lexically_relative(m_root))));
}

} // namespace
} // namespace warmgraph::test::damage_test
