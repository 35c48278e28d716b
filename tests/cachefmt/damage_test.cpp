// Promises F1 and F2 about accidental damage: every bit is flipped, every shorter length is tried, and another key and
// another format.
#include "expect_error.hpp"
#include "sample_entry.hpp"
#include "stride.hpp"

namespace warmgraph::cachefmt::test::damage_test {
namespace {

using warmgraph::test::k_stride;
using warmgraph::test::poke;
using warmgraph::test::reseal;
namespace at = warmgraph::test::envelope_at;

/// An entry of nearly 4 KiB, stored uncompressed or compressed.
class Damage : public testing::TestWithParam<std::uint64_t> {
protected:
    void SetUp() override
    {
        Bytes noise(1800); // these bytes cannot be compressed
        std::uint32_t state = 1;
        for (std::byte& byte : noise) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
        entry.graph.regions[5] = {"table", RegionKind::constant, noise.size(), 16, noise};
        settle(entry);
        auto encoded = take(encode(entry, {.compress_above = GetParam()}));
        bytes = std::move(encoded);
        extent = *header_extent(bytes);
        ASSERT_TRUE(succeeded(decode(bytes, entry.header.key)));
    }

    Entry entry = sample_entry();
    Bytes bytes;
    std::uint64_t extent = 0;
};

TEST_P(Damage, OfAnySingleBitIsRefused)
{
    ASSERT_GT(bytes.size(), 3'500U);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += k_stride) {
        const std::byte mask = std::byte{1} << (bit % 8);
        bytes[bit / 8] ^= mask;
        const auto decoded = decode(bytes, entry.header.key);
        ASSERT_FALSE(decoded) << "bit " << bit;
        ASSERT_TRUE(decoded.error().code == ErrorCode::corrupt || decoded.error().code == ErrorCode::stale);
        ASSERT_EQ(decode_header(bytes, entry.header.key).has_value(), bit / 8 >= extent) << "bit " << bit;
        bytes[bit / 8] ^= mask;
    }
}

TEST_P(Damage, ByTruncationAtAnyLengthIsRefused)
{
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)); // a copy: ASan sees its end
        ASSERT_TRUE(failed_with(decode(cut, entry.header.key), ErrorCode::corrupt)) << size;
        ASSERT_EQ(decode_header(cut, entry.header.key).has_value(), size >= extent) << size;
        ASSERT_EQ(header_extent(cut).has_value(), size >= k_envelope_bytes) << size;
    }
}

TEST_P(Damage, ByExtensionIsRefused)
{
    for (const std::size_t more : {1, 2, 7, 8, 64, 4096}) {
        for (const std::byte fill : {std::byte{0}, std::byte{0xFF}}) {
            Bytes longer = bytes;
            longer.insert(longer.end(), more, fill);
            EXPECT_TRUE(failed_with(decode(longer, entry.header.key), ErrorCode::corrupt, "its envelope says")) << more;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Stored, Damage, testing::Values(0, 1 << 20),
                         [](const auto& given) { return given.param == 0 ? "Compressed" : "Plain"; });

class Envelope : public testing::Test {
protected:
    const Entry entry = sample_entry();
    Bytes bytes = encode(entry).value();
};

TEST_F(Envelope, IsLaidOutAsDocumented)
{
    EXPECT_EQ(as_text(ByteView{bytes}.first(8)), "\x89WGENT\r\n");
    EXPECT_EQ(load<std::uint32_t>(bytes, at::version), k_format_version);
    EXPECT_EQ(load<std::uint32_t>(bytes, at::kind), 1U);
    EXPECT_EQ(at::end + load<std::uint64_t>(bytes, at::header_size) + load<std::uint64_t>(bytes, at::payload_stored),
              bytes.size());
    Bytes resealed = bytes;
    reseal(resealed, entry.header.key); // a second implementation of the digests makes them match
    EXPECT_EQ(resealed, bytes);
}

TEST_F(Envelope, OfAnotherKeyIsStale)
{
    for (auto change :
         {+[](EntryKey& key) { key.function.model_info += "x"; }, +[](EntryKey& key) { key.function.rank += "x"; },
          +[](EntryKey& key) { key.function.function += "x"; },
          +[](EntryKey& key) { key.guards_digest.bytes[31] ^= std::byte{1}; },
          // The letters are the same, but divided at another place.
          +[](EntryKey& key) {
              key.function = {key.function.model_info + "w", key.function.rank.substr(1), key.function.function};
          }}) {
        EntryKey other = entry.header.key;
        change(other);
        EXPECT_TRUE(failed_with(decode(bytes, other), ErrorCode::stale, "under another key"));
        EXPECT_TRUE(failed_with(decode_header(bytes, other), ErrorCode::stale, "under another key"));
    }
}

TEST_F(Envelope, ResealedForAnotherKeyIsRefusedByItsHeader)
{
    EntryKey other = entry.header.key;
    other.function.function = "prompt";
    reseal(bytes, other);
    EXPECT_TRUE(failed_with(decode(bytes, other), ErrorCode::corrupt, "header holds another key"));
}

TEST_F(Envelope, OfANewerFormatIsStaleAndSaysSo)
{
    poke(bytes, at::version, k_format_version + 1);
    reseal(bytes, entry.header.key);
    const std::string message = "entry has format 6, this warmgraph reads 5";
    EXPECT_TRUE(failed_with(decode(bytes, entry.header.key), ErrorCode::stale, message));
    EXPECT_TRUE(failed_with(decode_header(bytes, entry.header.key), ErrorCode::stale, message));
    EXPECT_TRUE(failed_with(header_extent(bytes), ErrorCode::stale, message));
    EXPECT_EQ(stored_format_version(bytes), 6U);
}

TEST_F(Envelope, OfAnOlderFormatIsAMissWithAReason)
{
    poke(bytes, at::version, std::uint32_t{3});
    reseal(bytes, entry.header.key);
    EXPECT_TRUE(
        failed_with(decode(bytes, entry.header.key), ErrorCode::stale, "entry has format 3, this warmgraph reads 5"));
}

TEST_F(Envelope, TellsItsFormatOnlyWithTheMagic)
{
    EXPECT_EQ(stored_format_version(bytes), k_format_version);
    EXPECT_EQ(stored_format_version(ByteView{bytes}.first(175)), std::nullopt);
    bytes[0] = std::byte{0};
    EXPECT_EQ(stored_format_version(bytes), std::nullopt);
}

/// If a flipped bit made the version newer, the file would stay for ever, because files of a newer warmgraph are kept.
TEST_F(Envelope, WithADamagedVersionIsNotTakenForANewerFormat)
{
    for (std::size_t bit = 0; bit < 32; ++bit) {
        Bytes damaged = bytes;
        damaged[at::version + bit / 8] ^= std::byte{1} << (bit % 8);
        const auto version = stored_format_version(damaged);
        EXPECT_TRUE(!version || *version < k_format_version) << "bit " << bit;
        EXPECT_TRUE(failed_with(decode(damaged, entry.header.key), version ? ErrorCode::stale : ErrorCode::corrupt))
            << "bit " << bit;
    }
}

TEST_F(Envelope, WithUnknownFieldsIsRefusedEvenWhenResealed)
{
    struct Fault {
        std::size_t offset;
        std::uint32_t value;
        const char* message;
    };
    for (const Fault fault : {Fault{at::kind, 0, "entry kind 0"}, Fault{at::kind, 3, "entry kind 3"},
                              Fault{at::kind, 2, "a tombstone has no payload"},
                              Fault{at::compression, 2, "compression 2"}, Fault{at::compression, 1, "not a zstd frame"},
                              Fault{at::flags, 1, "flags"}, Fault{at::flags, 0x80000000, "flags"},
                              Fault{at::reserved, 1, "reserved"}, Fault{at::reserved + 12, 0x01000000, "reserved"},
                              Fault{at::signature_kind, 1, "key id or unused bytes are wrong"},
                              Fault{at::signature_kind, 3, "signature kind 3 is unknown"},
                              Fault{at::key_id, 'x', "key id or unused bytes are wrong"},
                              Fault{at::signature + 60, 1, "key id or unused bytes are wrong"}}) {
        Bytes changed = bytes;
        poke(changed, fault.offset, fault.value);
        reseal(changed, entry.header.key);
        EXPECT_TRUE(failed_with(decode(changed, entry.header.key), ErrorCode::corrupt, fault.message)) << fault.offset;
    }
}

} // namespace
} // namespace warmgraph::cachefmt::test::damage_test
