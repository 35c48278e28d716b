// Tests which objects are compressed when they are written, and that objects are read in any form.
#include <zstd.h>

#include "store_fixture.hpp"
#include "warmgraph/store/packing.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::test::packing_test {
namespace {

using store::Packing;
using store::Packings;

/// Bytes that compress to about a third of their size, which is far from the limit of 1/64.
Bytes code(std::size_t size = 100'000)
{
    Bytes bytes(size);
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < size; ++i) {
        state = state * 1664525 + 1013904223;
        bytes[i] = i % 3 == 0 ? static_cast<std::byte>(state >> 24U) : std::byte{0};
    }
    return bytes;
}

Bytes frame_of(ByteView raw, int level = 3)
{
    Bytes out(ZSTD_compressBound(raw.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), level));
    return out;
}

class StoredPacked : public testing::Test {
protected:
    std::unique_ptr<LocalStore> open(const std::string& setting) const
    {
        StoreOptions options;
        options.packings = store::parse_packings("test", setting).value();
        auto opened = LocalStore::open(m_dir.path() / "cache", options);
        EXPECT_TRUE(succeeded(opened));
        return std::move(*opened);
    }
    fs::path file_of(const Digest& digest) const
    {
        const std::string hex = to_hex(digest);
        return m_dir.path() / "cache" / "images" / hex.substr(0, 2) / hex;
    }
    void write(const Digest& digest, ByteView bytes) const
    {
        fs::create_directories(file_of(digest).parent_path());
        fs::permissions(m_dir.path() / "cache" / "images", fs::perms(0700));
        fs::permissions(file_of(digest).parent_path(), fs::perms(0700));
        std::ofstream(file_of(digest), std::ios::binary) << as_text(bytes);
        fs::permissions(file_of(digest), fs::perms(0600));
    }
    TempDir m_dir;
};

TEST(Packings, AreSetByKind)
{
    const Packings defaults;
    EXPECT_EQ(defaults.payloads.level, 3);
    EXPECT_EQ(defaults.images.level, 0) << "docs/measurements.md, Store and bundles";
    EXPECT_EQ(store::parse_packings("x", "").value(), defaults);
    const Packings set = store::parse_packings("x", "images=9@4K,payloads=0").value();
    EXPECT_EQ(set.images, (Packing{9, 4096}));
    EXPECT_EQ(set.payloads, (Packing{0, defaults.payloads.above}));
    EXPECT_EQ(set.constants, defaults.constants);
}

TEST(Packings, OfAProgramAreSetOnTopOfTheEnvironment)
{
    ::setenv("WARMGRAPH_COMPRESSION", "images=9@4K,payloads=0", 1);
    Packings packings = store::environment_packings();
    ::unsetenv("WARMGRAPH_COMPRESSION");
    EXPECT_TRUE(succeeded(store::set_packing(packings, "x", store::ArtifactKind::entries, {7, 1})));
    EXPECT_TRUE(succeeded(store::set_packing(packings, "x", store::ArtifactKind::constants, {1, 2})));
    EXPECT_EQ(packings.payloads, (Packing{7, 1}));
    EXPECT_EQ(packings.images, (Packing{9, 4096}));
    EXPECT_EQ(packings.constants, (Packing{1, 2}));
    for (const int level : {-1, 20})
        EXPECT_TRUE(failed_with(store::set_packing(packings, "x", store::ArtifactKind::entries, {level, 0}),
                                ErrorCode::invalid_argument, "x of entries has the level"));
    for (const auto kind : {store::ArtifactKind::tuned, store::ArtifactKind{0}})
        EXPECT_TRUE(failed_with(store::set_packing(packings, "x", kind, {}), ErrorCode::invalid_argument,
                                "expected entries, images or constants"));
}

TEST(Packings, ThatMakeNoSenseAreErrors)
{
    for (const char* text : {"images", "images=", "images=x", "images=20", "images=-1", "code=3", "images=3@",
                             "images=3@x", "images=3,", ",images=3", "images=3@4Q", "=3"})
        EXPECT_TRUE(failed_with(store::parse_packings("WARMGRAPH_COMPRESSION", text), ErrorCode::invalid_argument,
                                "WARMGRAPH_COMPRESSION is '"))
            << text;
}

TEST_F(StoredPacked, ImagesAreSmallerAndReadAsTheyWere)
{
    const Bytes image = code();
    const auto digest = sha256(image);
    {
        const auto store = open("images=3");
        EXPECT_TRUE(store->publish_image(image).value());
        EXPECT_FALSE(store->publish_image(image).value()) << "it is there";
        EXPECT_LT(fs::file_size(file_of(digest)), image.size() / 2);
    }
    for (const char* setting : {"images=0", "images=19"}) {
        const auto store = open(setting);
        EXPECT_EQ(store->image(digest).value().value(), image);
        EXPECT_EQ(store->image(digest, image.size()).value().value(), image) << "of the size that the entry says";
        EXPECT_EQ(store->object(store::ImageName{digest}).value().value(), image) << "as bundles want it";
        EXPECT_FALSE(store->publish_image(image).value()) << "however it is stored";
        EXPECT_THAT(store->check().value(), IsEmpty());
    }
}

TEST_F(StoredPacked, KindsAreToldApart)
{
    const Bytes image = code(), constant = code(90'000);
    const auto store = open("constants=3");
    ASSERT_TRUE(succeeded(store->publish_image(image)));
    ASSERT_TRUE(succeeded(store->publish_image(constant, store::ArtifactKind::constants)));
    EXPECT_EQ(fs::file_size(file_of(sha256(image))), image.size());
    EXPECT_LT(fs::file_size(file_of(sha256(constant))), constant.size() / 2);
    EXPECT_EQ(store->image(sha256(constant)).value().value(), constant);
}

TEST_F(StoredPacked, WhatIsSmallOrGainsNothingStaysAsItIs)
{
    Bytes noise(100'000);
    std::uint64_t state = 88172645463325252ULL;
    for (std::byte& byte : noise) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
        byte = static_cast<std::byte>(state >> 32U);
    }
    const Bytes small = code(10'000);
    const auto store = open("images=3@16K");
    for (const Bytes& image : {noise, small}) {
        ASSERT_TRUE(succeeded(store->publish_image(image)));
        EXPECT_EQ(fs::file_size(file_of(sha256(image))), image.size());
        EXPECT_EQ(store->image(sha256(image)).value().value(), image);
    }
}

TEST_F(StoredPacked, WhatCompressesWellIsFilledUpToWhatAReaderTakes)
{
    const Bytes zeros(1'000'000);
    const auto store = open("images=3");
    ASSERT_TRUE(succeeded(store->publish_image(zeros)));
    EXPECT_GT(fs::file_size(file_of(sha256(zeros))), zeros.size() / store::k_most_packed);
    EXPECT_EQ(store->image(sha256(zeros)).value().value(), zeros);
}

TEST_F(StoredPacked, ABlobThatIsAFrameItselfIsThatFrame)
{
    const Bytes frame = frame_of(code());
    const auto digest = sha256(frame);
    for (const char* setting : {"images=0", "images=3@0"}) {
        const auto store = open(setting);
        ASSERT_TRUE(succeeded(store->publish_image(frame)));
        EXPECT_EQ(store->image(digest).value().value(), frame) << setting;
    }
}

TEST_F(StoredPacked, FramesThatLieAreMissingAndSetAside)
{
    const auto store = open("");
    const Bytes image = code();
    const auto digest = sha256(image);
    Bytes flipped = frame_of(image);
    flipped[flipped.size() / 2] ^= std::byte{1};
    Bytes cut = frame_of(image);
    cut.resize(cut.size() - 1);
    const Bytes other = frame_of(code(99'000)), bomb = frame_of(Bytes(100'000'000));
    Bytes trailing = frame_of(image);
    trailing.push_back(std::byte{0});
    for (const Bytes& bytes : {flipped, cut, other, bomb, trailing}) {
        write(digest, bytes);
        EXPECT_THAT(store->check().value(), Not(IsEmpty()));
        EXPECT_TRUE(failed_with(store->object(store::ImageName{digest}), ErrorCode::corrupt, "SHA-256"));
        const auto found = take(store->image(digest));
        EXPECT_FALSE(found.has_value());
        EXPECT_FALSE(fs::exists(file_of(digest))) << "in quarantine";
    }
    ASSERT_TRUE(succeeded(store->publish_image(image)));
    EXPECT_EQ(store->image(digest).value().value(), image) << "a better one takes its place";
}

/// A frame may expand to at most 64 times its size, and not above the cap, whatever size it claims.
TEST(Unpacking, IsBounded)
{
    const Bytes zeros(1'000'000);
    const auto digest = sha256(zeros);
    EXPECT_TRUE(failed_with(store::unpack(frame_of(zeros), digest, zeros.size()), ErrorCode::corrupt, "SHA-256"))
        << "more than 64 to 1";
    const Bytes raw = code();
    EXPECT_EQ(store::unpack(frame_of(raw), sha256(raw), raw.size()).value(), raw);
    EXPECT_FALSE(store::unpack(frame_of(raw), sha256(raw), raw.size() - 1)) << "over the cap";
    EXPECT_FALSE(store::unpack(raw, sha256(raw), raw.size() - 1));
    EXPECT_EQ(store::unpack(raw, sha256(raw), raw.size()).value(), raw);
    EXPECT_FALSE(store::unpack({}, digest, 10));
    EXPECT_EQ(store::unpack({}, sha256({}), 10).value(), Bytes{});
}

TEST_F(StoredPacked, PayloadsFollowTheirOwnSetting)
{
    Entry entry = make_entry(k_decode);
    entry.graph.nodes = {cachefmt::FillNode{{}, Bytes(4), 1024}};
    for (int i = 0; i < 400; ++i) entry.graph.nodes.push_back(entry.graph.nodes.front());
    entry.header.info.node_count = static_cast<std::uint32_t>(entry.graph.nodes.size());
    std::vector<std::uintmax_t> sizes;
    for (const char* setting : {"payloads=0", "payloads=3@0", "payloads=3@1M"}) {
        const auto store = open(setting);
        ASSERT_TRUE(succeeded(store->publish(entry)));
        sizes.push_back(store->variants(k_decode).value().at(0).size);
        EXPECT_EQ(store->entry(entry.header.key).value().value().graph, entry.graph);
    }
    EXPECT_LT(sizes[1], sizes[0]);
    EXPECT_EQ(sizes[2], sizes[0]);
}

} // namespace
} // namespace warmgraph::test::packing_test
