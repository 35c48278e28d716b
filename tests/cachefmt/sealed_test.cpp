// Tests sealed files of any kind. Such a file has facts, contents and a signature.

#include "expect_error.hpp"
#include "warmgraph/cachefmt/sealed.hpp"

namespace warmgraph::cachefmt::test::sealed_test {
namespace {

constexpr SealedKind k_kind{.magic = "WGTESTS\n",
                            .format = 3,
                            .name = "test's file",
                            .digest_label = "facts of a test",
                            .signature_label = "signature of a test",
                            .most_facts = 100};
constexpr std::string_view k_facts = R"({"name":"matmul"})";

Bytes contents() { return {std::byte{1}, std::byte{2}, std::byte{3}}; }

class Sealing : public testing::Test {
protected:
    const SigningKey key = SigningKey::generate("ci-2026", SignatureKind::ed25519).value();
    const Bytes file = seal(k_kind, k_facts, contents(), &key).value();
};

TEST_F(Sealing, IsOpenedAsItWasWritten)
{
    const auto found = take(open_sealed(k_kind, file));
    EXPECT_EQ(as_text(found.facts), k_facts);
    EXPECT_EQ(Bytes(found.contents.begin(), found.contents.end()), contents());
    EXPECT_EQ(found.contents_size, 3U);
    EXPECT_EQ(found.key_id, "ci-2026");
    EXPECT_TRUE(found.is_signed());
    EXPECT_TRUE(found.is_signed_by(key, k_kind));
}

TEST_F(Sealing, WithoutAKeyItIsNotSigned)
{
    const Bytes unsigned_file = seal(k_kind, k_facts, contents(), nullptr).value();
    const auto found = take(open_sealed(k_kind, unsigned_file));
    EXPECT_EQ(found.kind, SignatureKind::none);
    EXPECT_FALSE(found.is_signed());
    EXPECT_FALSE(found.is_signed_by(key, k_kind));
}

TEST_F(Sealing, NoByteBeforeTheContentsChangesUnseen)
{
    for (std::size_t at = 0; at < k_sealed_head + k_facts.size(); ++at) {
        Bytes damaged = file;
        damaged[at] ^= std::byte{0x40};
        EXPECT_FALSE(open_sealed(k_kind, damaged)) << "byte " << at;
    }
}

TEST_F(Sealing, AnotherKeyOrKindDidNotSignIt)
{
    const auto found = take(open_sealed(k_kind, file));
    EXPECT_FALSE(found.is_signed_by(SigningKey::generate("ci-2026", SignatureKind::ed25519).value(), k_kind));
    EXPECT_FALSE(found.is_signed_by(SigningKey::generate("ci-2026", SignatureKind::hmac_sha256).value(), k_kind));
    SealedKind other = k_kind;
    other.signature_label = "signature of another test";
    EXPECT_FALSE(found.is_signed_by(key, other));
}

TEST_F(Sealing, AnotherKindsFileIsNotOpened)
{
    SealedKind other = k_kind;
    other.magic = "WGOTHERS";
    EXPECT_TRUE(failed_with(open_sealed(other, file), ErrorCode::corrupt, "are not a test's file"));
    other = k_kind;
    other.digest_label = "facts of another test";
    EXPECT_TRUE(failed_with(open_sealed(other, file), ErrorCode::corrupt, "digest does not match"));
    other = k_kind;
    other.format = 4;
    EXPECT_TRUE(failed_with(open_sealed(other, file), ErrorCode::stale, "format 3, expected 4"));
}

TEST_F(Sealing, MoreFactsThanTheKindHasAreNotOpened)
{
    SealedKind other = k_kind;
    other.most_facts = k_facts.size() - 1;
    EXPECT_TRUE(failed_with(open_sealed(other, file), ErrorCode::corrupt, "facts are truncated"));
}

TEST_F(Sealing, AFileCanBeOpenedWithoutItsContentsAndNotWithoutItsFacts)
{
    const ByteView bytes = file;
    const auto found = take(open_sealed(k_kind, bytes.first(k_sealed_head + k_facts.size())));
    EXPECT_TRUE(found.contents.empty());
    EXPECT_EQ(found.contents_size, 3U);
    EXPECT_TRUE(
        failed_with(open_sealed(k_kind, bytes.first(k_sealed_head + 1)), ErrorCode::corrupt, "facts are truncated"));
    EXPECT_TRUE(failed_with(open_sealed(k_kind, bytes.first(8)), ErrorCode::corrupt, "8 bytes are not a test's file"));
    EXPECT_TRUE(failed_with(open_sealed(k_kind, {}), ErrorCode::corrupt, "0 bytes are not a test's file"));
}

} // namespace
} // namespace warmgraph::cachefmt::test::sealed_test
