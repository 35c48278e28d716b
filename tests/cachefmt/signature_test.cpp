// Promise S1: a signature is missing, wrong, old, cut, flipped, or belongs to another entry. Promise S2: no message
// contains a secret.
#include "expect_error.hpp"
#include "sample_entry.hpp"
#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::cachefmt::test::signature_test {
namespace {

using warmgraph::test::poke;
using warmgraph::test::reseal;
using warmgraph::test::reseal_marks;
namespace at = warmgraph::test::envelope_at;

using Key = std::shared_ptr<const SigningKey>;

Key key_of(const std::string& line) { return std::make_shared<const SigningKey>(SigningKey::parse(line).value()); }
Key made(const std::string& id, SignatureKind kind)
{
    return std::make_shared<const SigningKey>(SigningKey::generate(id, kind).value());
}

Trust only(const Key& key) { return {.sign_with = {}, .accepted = {key}, .require = true}; }

/// Each case runs with every kind of key, which signs and verifies.
class Signed : public testing::TestWithParam<SignatureKind> {
protected:
    const Key key = made("ci-2026", GetParam());
    const Key verifier = GetParam() == SignatureKind::ed25519 ? key_of(key->public_line()) : key;
    const Entry entry = sample_entry();
    const EntryKey& name = entry.header.key;
    Bytes bytes = encode(entry, {.sign_with = key.get()}).value();
};

TEST_P(Signed, EntriesAreAcceptedAndSayByWhom)
{
    const auto decoded = take(decode(bytes, name, {}, only(verifier)));
    EXPECT_EQ(decoded.header.signed_by, "ci-2026");
    EXPECT_EQ(decoded.graph, entry.graph);
    EXPECT_EQ(decode_header(bytes, name, {}, only(verifier)).value().signed_by, "ci-2026");
    EXPECT_TRUE(succeeded(decode(bytes, name))) << "who asks for nothing takes signed ones too";
    EXPECT_EQ(decode(bytes, name).value().header.signed_by, "");
}

TEST_P(Signed, EntriesAreRefusedUnderOtherKeys)
{
    for (const Key& other : {made("ci-2026", SignatureKind::hmac_sha256), made("ci-2026", SignatureKind::ed25519)})
        EXPECT_TRUE(failed_with(decode(bytes, name, {}, only(other)), ErrorCode::untrusted, "'ci-2026'"));
    EXPECT_TRUE(failed_with(decode(bytes, name, {}, only(made("ci-2027", GetParam()))), ErrorCode::untrusted,
                            "signed with key 'ci-2026', accepted are: ci-2027"));
    Trust lenient = only(made("ci-2026", GetParam()));
    lenient.require = false;
    EXPECT_TRUE(failed_with(decode(bytes, name, {}, lenient), ErrorCode::untrusted, "forged"))
        << "a wrong signature of a known key is no entry without one";
    lenient = only(made("ci-2027", GetParam()));
    lenient.require = false;
    EXPECT_TRUE(succeeded(decode(bytes, name, {}, lenient)));
}

TEST_P(Signed, EntriesOfSeveralKeysAreAcceptedWhileTheyAreRotated)
{
    const Key next = made("ci-2027", GetParam());
    const Bytes newer = encode(entry, {.sign_with = next.get()}).value();
    Trust both = only(verifier);
    both.accepted.push_back(next);
    EXPECT_EQ(decode(bytes, name, {}, both).value().header.signed_by, "ci-2026");
    EXPECT_EQ(decode(newer, name, {}, both).value().header.signed_by, "ci-2027");
    EXPECT_TRUE(failed_with(decode(bytes, name, {}, only(next)), ErrorCode::untrusted)) << "the old key is withdrawn";
}

TEST_P(Signed, EntriesWithAnyBitOfTheSignatureFlippedAreDamaged)
{
    for (std::size_t bit = 8 * at::signature_kind; bit < 8 * at::end; ++bit) {
        Bytes flipped = bytes;
        flipped[bit / 8] ^= std::byte{1} << (bit % 8);
        ASSERT_TRUE(failed_with(decode(flipped, name), ErrorCode::corrupt, "signature")) << bit;
        reseal_marks(flipped); // an attacker can do this too
        const auto refused = decode(flipped, name, {}, only(verifier));
        ASSERT_EQ(refused.has_value(), bit >= 8 * at::signature_seal) << bit;
        if (!refused) {
            ASSERT_NE(refused.error().code, ErrorCode::stale);
        }
    }
}

TEST_P(Signed, EntriesWithoutTheirSignatureOrWithPartOfItAreRefused)
{
    Bytes stripped = bytes;
    std::fill(stripped.begin() + at::signature_kind, stripped.begin() + at::end, std::byte{0});
    reseal_marks(stripped);
    EXPECT_TRUE(succeeded(decode(stripped, name)));
    EXPECT_TRUE(failed_with(decode(stripped, name, {}, only(verifier)), ErrorCode::untrusted, "is not signed"));
    for (std::size_t kept = 0; kept < 64; ++kept) { // shorter signatures
        Bytes cut = bytes;
        std::fill(cut.begin() + at::signature + static_cast<std::ptrdiff_t>(kept), cut.begin() + at::signature_seal,
                  std::byte{0});
        if (cut == bytes) break; // an HMAC has only 32 bytes
        reseal_marks(cut);
        ASSERT_TRUE(failed_with(decode(cut, name, {}, only(verifier)), ErrorCode::untrusted)) << kept;
    }
}

TEST_P(Signed, EntriesCannotBeChangedOrRenamed)
{
    EntryKey other = name;
    other.function.function = "prompt";
    Bytes renamed = bytes;
    reseal(renamed, other); // puts the entry under another name
    EXPECT_TRUE(failed_with(decode(renamed, other, {}, only(verifier)), ErrorCode::untrusted));

    Bytes payload = bytes; // changes the payload
    payload.back() ^= std::byte{1};
    reseal(payload, name);
    EXPECT_TRUE(failed_with(decode(payload, name, {}, only(verifier)), ErrorCode::untrusted));

    Entry twin = entry; // another entry with the same key, which gets this entry's signature
    twin.header.info.created_by = "somebody";
    Bytes replayed = encode(twin).value();
    std::copy(bytes.begin() + at::signature_kind, bytes.begin() + at::signature_seal,
              replayed.begin() + at::signature_kind);
    reseal_marks(replayed);
    EXPECT_TRUE(failed_with(decode(replayed, name, {}, only(verifier)), ErrorCode::untrusted, "forged"));
}

/// The entry names its code by digests, and the signature covers the digests. So other code cannot be put under the
/// signature.
TEST_P(Signed, EntriesCannotHaveTheirImagesExchanged)
{
    Entry forged = entry;
    ASSERT_FALSE(forged.graph.images.empty());
    forged.graph.images[0].digest = sha256(as_bytes("somebody's code"));
    Bytes exchanged = encode(forged).value();
    ASSERT_TRUE(succeeded(decode(exchanged, name)));
    std::copy(bytes.begin() + at::signature_kind, bytes.begin() + at::signature_seal,
              exchanged.begin() + at::signature_kind);
    reseal_marks(exchanged);
    EXPECT_TRUE(failed_with(decode(exchanged, name, {}, only(verifier)), ErrorCode::untrusted, "forged"));
}

TEST_P(Signed, EntriesAreRefusedBeforeTheirPayloadIsNeeded)
{
    bytes.resize(header_extent(bytes).value());
    EXPECT_TRUE(succeeded(decode_header(bytes, name, {}, only(verifier))));
    EXPECT_TRUE(failed_with(decode_header(bytes, name, {}, only(made("x", GetParam()))), ErrorCode::untrusted));
}

INSTANTIATE_TEST_SUITE_P(Each, Signed, testing::Values(SignatureKind::hmac_sha256, SignatureKind::ed25519),
                         [](const auto& given) { return given.param == SignatureKind::ed25519 ? "Ed25519" : "Hmac"; });

TEST(Tombstones, AreSignedToo)
{
    const Key key = made("k", SignatureKind::hmac_sha256);
    const Entry tombstone = sample_tombstone();
    const Bytes bytes = encode(tombstone, {.sign_with = key.get()}).value();
    EXPECT_TRUE(succeeded(decode(bytes, tombstone.header.key, {}, only(key))));
    EXPECT_TRUE(
        failed_with(decode(encode(tombstone).value(), tombstone.header.key, {}, only(key)), ErrorCode::untrusted));
}

/// The test vectors. HMAC: the text of RFC 4231, case 2, with a key of the length that we use; the value was computed
/// with Python. Ed25519: RFC 8032, section 7.1, test 1.
TEST(SigningKeys, SignAsTheRfcsSay)
{
    const std::string secret(64, 'a'); // the text of 32 bytes 0xaa
    const auto hmac =
        SigningKey::parse("k:hmac-sha256:" + secret).value().sign(as_bytes("what do ya want for nothing?"));
    Digest digest;
    std::copy_n(hmac.value().begin(), digest.bytes.size(), digest.bytes.begin());
    EXPECT_EQ(to_hex(digest), "40f7684c3cbd90ba46f70247ca1d7cc692d673f434b66926a93c7f224ec74a5e");

    const auto seed =
        SigningKey::parse("k:ed25519:9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").value();
    EXPECT_EQ(seed.public_line(), "k:ed25519-public:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    const auto signature = seed.sign({}).value();
    Digest first;
    std::copy_n(signature.begin(), first.bytes.size(), first.bytes.begin());
    EXPECT_EQ(to_hex(first), "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155");
}

TEST(SigningKeys, ThatAreNoneAreRefusedWithoutTheirDigits)
{
    const std::string digits = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";
    for (const std::string& line :
         {digits, "k:" + digits, ":hmac-sha256:" + digits, "a b:hmac-sha256:" + digits, "k:sha1:" + digits,
          "k:" + digits + ":" + digits, "k:hmac-sha256:" + digits.substr(2), "k:hmac-sha256:" + digits + digits + "ab",
          "k:hmac-sha256:" + digits.substr(1) + "x", "k:ed25519:" + digits + digits,
          "k:ed25519-public:" + digits.substr(4), std::string(61, 'k') + ":ed25519:" + digits,
          std::string("k:ed25519:")}) {
        const auto refused = SigningKey::parse(line);
        ASSERT_TRUE(failed_with(refused, ErrorCode::invalid_argument)) << line;
        EXPECT_EQ(refused.error().message.find("5ec2"), std::string::npos) << refused.error().message;
        EXPECT_EQ(refused.error().message.find("c2e7"), std::string::npos) << refused.error().message;
    }
}

TEST(SigningKeys, OfWhichOnlyThePublicHalfIsThereCannotSign)
{
    const auto key = SigningKey::parse(made("k", SignatureKind::ed25519)->public_line()).value();
    EXPECT_FALSE(key.is_secret());
    EXPECT_TRUE(failed_with(key.sign(as_bytes("x")), ErrorCode::invalid_argument, "public key"));
    EXPECT_TRUE(failed_with(encode(sample_entry(), {.sign_with = &key}), ErrorCode::invalid_argument, "cannot sign"));
}

TEST(SigningKeys, AreNotInWhatTheySign)
{
    const std::string digits = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";
    const auto key = key_of("k:hmac-sha256:" + digits);
    const Bytes bytes = encode(sample_entry(), {.sign_with = key.get()}).value();
    const std::string raw = "\x5e\xc2\xe7\x5e\xc2\xe7";
    EXPECT_EQ(as_text(bytes).find(raw), std::string_view::npos);
    EXPECT_EQ(as_text(bytes).find("5ec2e7"), std::string_view::npos);
}

} // namespace
} // namespace warmgraph::cachefmt::test::signature_test
