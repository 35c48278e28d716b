// Tests digests, bytes, dtypes, error codes, phases and times as text.
#include <set>

#include <gtest/gtest.h>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/dtype.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/phases.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::test::values_test {
namespace {

// The test vectors of FIPS 180-4 (NIST, "SHA-256 examples").
TEST(Sha256, GivesTheStandardsVectors)
{
    EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(to_hex(sha256(as_bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(to_hex(sha256(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(to_hex(sha256(as_bytes(std::string(1'000'000, 'a')))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, GivesTheSameInPiecesAsAtOnce)
{
    const std::string text(1000, 'x');
    for (const std::size_t cut : {0, 1, 63, 64, 65, 999, 1000}) {
        Sha256 hash;
        hash.update(as_bytes(std::string_view(text).substr(0, cut)))
            .update(as_bytes(std::string_view(text).substr(cut)));
        EXPECT_EQ(hash.finish(), sha256(as_bytes(text))) << "cut at " << cut;
    }
}

TEST(Sha256, CanBeUsedAgainAfterFinish)
{
    Sha256 hash;
    static_cast<void>(hash.update(as_bytes("first")).finish());
    EXPECT_EQ(hash.update(as_bytes("abc")).finish(), sha256(as_bytes("abc")));
}

TEST(Sha256, TellsFieldsApartByTheirLength)
{
    EXPECT_NE(Sha256().update_field("ab").update_field("c").finish(),
              Sha256().update_field("a").update_field("bc").finish());
    EXPECT_EQ(Sha256().update_field("ab").finish(), Sha256().update_field(as_bytes("ab")).finish());
}

TEST(Digest, ComesBackFromHexAndRefusesAnythingElse)
{
    const Digest digest = sha256(as_bytes("abc"));
    const std::string hex = to_hex(digest);
    EXPECT_EQ(digest_from_hex(hex), digest);
    EXPECT_EQ(short_hex(digest), hex.substr(0, 8));
    EXPECT_FALSE(digest_from_hex(hex.substr(1)));
    EXPECT_FALSE(digest_from_hex(hex + "0"));
    EXPECT_FALSE(digest_from_hex(std::string(64, 'g')));
    EXPECT_FALSE(digest_from_hex(""));
}

TEST(Bytes, AreLittleEndianOnEveryHost)
{
    Bytes bytes;
    append(bytes, std::uint32_t{0x04030201});
    append(bytes, as_bytes("\x05"));
    EXPECT_EQ(as_text(bytes), "\x01\x02\x03\x04\x05");
    EXPECT_EQ(load<std::uint16_t>(bytes, 1), 0x0302);
}

TEST(DType, NamesComeBackAndAreAllDifferent)
{
    std::set<std::string_view> names;
    for (std::uint8_t value = 0; value < k_dtype_count; ++value) {
        const auto type = static_cast<DType>(value);
        EXPECT_EQ(parse_dtype(to_string(type)), type);
        EXPECT_GT(size_of(type), 0U);
        names.insert(to_string(type));
    }
    EXPECT_EQ(names.size(), k_dtype_count);
    EXPECT_EQ(to_string(DType::bf16), "bf16");
    EXPECT_EQ(to_string(static_cast<DType>(k_dtype_count)), "unknown");
    EXPECT_FALSE(parse_dtype("f8"));
    EXPECT_FALSE(parse_dtype(""));
}

TEST(ErrorCode, EveryCodeHasItsOwnName)
{
    constexpr auto k_last = static_cast<std::size_t>(ErrorCode::partly_launched); // codes are 1 to this number
    std::set<std::string_view> names;
    for (std::size_t value = 1; value <= k_last; ++value) names.insert(to_string(static_cast<ErrorCode>(value)));
    EXPECT_EQ(names.size(), k_last);
    EXPECT_FALSE(names.contains("unknown"));
    EXPECT_EQ(to_string(ErrorCode::not_recordable), "not_recordable");
}

TEST(Error, SaysWhatWasBeingDone)
{
    const Error error = within("publish decode", {ErrorCode::no_space, "no space left"}).error();
    EXPECT_EQ(error.code, ErrorCode::no_space);
    EXPECT_EQ(error.message, "publish decode: no space left");
}

TEST(Phases, AddUpByNameInTheOrderOfFirstUse)
{
    Phases phases;
    phases.add("load", Milliseconds(2));
    phases.add("build", Milliseconds(3));
    phases.add("load", Milliseconds(1));
    ASSERT_EQ(phases.list().size(), 2U);
    EXPECT_EQ(phases.list()[0].first, "load");
    EXPECT_EQ(phases.get("load"), Milliseconds(3));
    EXPECT_EQ(phases.get("publish"), Milliseconds(0));
}

TEST(Phases, MeasureAScope)
{
    Phases phases;
    const auto start = system_clock().steady();
    {
        const auto timer = phases.measure("spin");
        const auto inside = system_clock().steady();
        while (system_clock().steady() - inside < std::chrono::milliseconds(2)) {}
    }
    EXPECT_GE(phases.get("spin").count(), 2.0);
    EXPECT_LE(phases.get("spin"), system_clock().steady() - start);
}

TEST(Clock, WritesIso8601InUtc)
{
    using namespace std::chrono;
    const auto time = sys_days{year{2026} / 11 / 20} + 10h + 11min + 12s + 999ms;
    EXPECT_EQ(to_iso8601(time_point_cast<std::chrono::system_clock::duration>(time)), "2026-11-20T10:11:12Z");
    EXPECT_EQ(to_iso8601(std::chrono::system_clock::time_point{}), "1970-01-01T00:00:00Z");
    EXPECT_EQ(to_iso8601(std::chrono::system_clock::time_point{} - 1s), "1969-12-31T23:59:59Z");
}

} // namespace
} // namespace warmgraph::test::values_test
