// PyTorch's compiled artifacts in a cache folder. They are returned only when an accepted key signed them, and never if
// they are damaged.
#include "store_fixture.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::test::torch_test {
namespace {

using store::TorchFacts;

const TorchFacts k_facts{{"torch", "2.11.0+cu130"}, {"gpu", "NVIDIA H100"}, {"model", "llama"}};
constexpr std::string_view k_when = "2026-11-25T06:00:00Z";

cachefmt::Trust trust_of(std::shared_ptr<const SigningKey> key) { return {.sign_with = std::move(key)}; }
std::shared_ptr<const SigningKey> new_key(const std::string& id, SignatureKind kind = SignatureKind::hmac_sha256)
{
    return std::make_shared<const SigningKey>(SigningKey::generate(id, kind).value());
}

class TorchArtifacts : public StoreTest {
protected:
    fs::path path() const
    {
        const std::string hex = to_hex(store::key_of(k_facts));
        return m_root / "torch" / hex.substr(0, 2) / (hex + ".mega_cache");
    }
    const cachefmt::Trust m_trust = trust_of(new_key("release"));
    const Bytes m_bytes = image_of("pickles, as far as anybody knows");
};

TEST_F(TorchArtifacts, AreFoundAgainByTheirFactsAlone)
{
    const auto store = open();
    EXPECT_EQ(find_torch(*store, k_facts, m_trust).value(), std::nullopt);
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, m_bytes, m_trust)));
    EXPECT_TRUE(fs::exists(path()));
    EXPECT_EQ(find_torch(*store, k_facts, m_trust).value(), m_bytes);
    for (const auto& [name, value] : k_facts) {
        TorchFacts other = k_facts;
        other[name] = "another";
        EXPECT_EQ(find_torch(*store, other, m_trust).value(), std::nullopt) << name;
    }
    const Bytes more = image_of("more of them");
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, more, m_trust)));
    EXPECT_EQ(find_torch(*store, k_facts, m_trust).value(), more);
    EXPECT_THAT(store->check().value(), IsEmpty());
    const auto names = store->tier().list({.kind = store::ArtifactKind::torch}).value();
    EXPECT_EQ(names, (std::vector<store::Name>{store::torch_name(k_facts)}));
    EXPECT_EQ(store::name_from_text(to_text(names[0])), names[0]);
}

TEST_F(TorchArtifacts, AreNeitherWrittenNorReadWithoutAKey)
{
    const auto store = open();
    EXPECT_TRUE(failed_with(put_torch(*store, k_facts, k_when, m_bytes, {}), ErrorCode::untrusted, "sign_with_file"));
    EXPECT_FALSE(fs::exists(m_root / "torch"));
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, m_bytes, m_trust)));
    EXPECT_TRUE(failed_with(find_torch(*store, k_facts, {}), ErrorCode::untrusted, "WARMGRAPH_ACCEPT_KEYS_FILE"))
        << "although signatures are not required";
    cachefmt::Trust reader;
    reader.accepted.push_back(m_trust.sign_with);
    EXPECT_EQ(find_torch(*store, k_facts, reader).value(), m_bytes);
    EXPECT_TRUE(failed_with(put_torch(*store, k_facts, k_when, m_bytes, reader), ErrorCode::untrusted));
}

TEST_F(TorchArtifacts, OfAnotherKeyAreNotGivenAndStay)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, m_bytes, m_trust)));
    EXPECT_TRUE(failed_with(find_torch(*store, k_facts, trust_of(new_key("other"))), ErrorCode::untrusted,
                            "key 'release', which is not accepted"));
    EXPECT_TRUE(failed_with(find_torch(*store, k_facts, trust_of(new_key("release"))), ErrorCode::untrusted,
                            "another key, or the signature is forged"));
    EXPECT_TRUE(failed_with(find_torch(*store, k_facts, trust_of(new_key("release", SignatureKind::ed25519))),
                            ErrorCode::untrusted));
    EXPECT_EQ(find_torch(*store, k_facts, m_trust).value(), m_bytes);
}

TEST_F(TorchArtifacts, AreRefusedWhereAnyByteChanged)
{
    const Bytes whole = store::encode_torch(k_facts, k_when, m_bytes, *m_trust.sign_with).value();
    EXPECT_EQ(store::decode_torch(whole, m_trust).value(), m_bytes);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        Bytes changed = whole;
        changed[at] ^= std::byte{0x20};
        EXPECT_FALSE(store::decode_torch(changed, m_trust).has_value()) << at;
        EXPECT_FALSE(store::inspect_torch(changed).has_value()) << at;
    }
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_TRUE(failed_with(store::inspect_torch(ByteView(whole).first(size)), ErrorCode::corrupt)) << size;
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_TRUE(failed_with(store::inspect_torch(longer), ErrorCode::corrupt));
    Bytes newer = whole;
    newer[8] = std::byte{2};
    EXPECT_TRUE(failed_with(store::inspect_torch(newer), ErrorCode::stale, "format 2, expected 1"));
}

TEST_F(TorchArtifacts, ThatAreDamagedGoToQuarantine)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, m_bytes, m_trust)));
    flip(path(), fs::file_size(path()) - 1);
    EXPECT_EQ(find_torch(*store, k_facts, m_trust).value(), std::nullopt);
    EXPECT_FALSE(fs::exists(path()));
    EXPECT_TRUE(fs::exists(m_root / "quarantine"));
}

TEST_F(TorchArtifacts, UnderTheNameOfOthersAreNotGiven)
{
    const auto store = open();
    TorchFacts other = k_facts;
    other["torch"] = "2.10.0";
    const Bytes object = store::encode_torch(other, k_when, m_bytes, *m_trust.sign_with).value();
    ASSERT_TRUE(succeeded(store->tier().put(store::torch_name(k_facts), object)));
    EXPECT_EQ(find_torch(*store, k_facts, m_trust).value(), std::nullopt) << "signed, and for another PyTorch";
}

TEST_F(TorchArtifacts, SayWhatTheyAreOf)
{
    const Bytes whole = store::encode_torch(k_facts, k_when, m_bytes, *m_trust.sign_with).value();
    EXPECT_EQ(store::inspect_torch(whole).value(),
              (store::TorchLabel{k_facts, std::string(k_when), "release", m_bytes.size()}));
    EXPECT_EQ(store::encode_torch(k_facts, k_when, m_bytes, *m_trust.sign_with).value(), whole) << "the same bytes";
}

TEST_F(TorchArtifacts, ThatCannotBeStoredAreRefusedByReason)
{
    const SigningKey& key = *m_trust.sign_with;
    const auto encode = [&](const TorchFacts& facts, ByteView bytes) {
        return store::encode_torch(facts, k_when, bytes, key);
    };
    EXPECT_TRUE(failed_with(encode({}, m_bytes), ErrorCode::invalid_argument, "expected 1 to 64"));
    EXPECT_TRUE(failed_with(encode({{"", "x"}}, m_bytes), ErrorCode::invalid_argument));
    EXPECT_TRUE(failed_with(encode({{"gpu", std::string(2000, 'x')}}, m_bytes), ErrorCode::invalid_argument));
    EXPECT_TRUE(failed_with(encode({{"gpu", "\xff"}}, m_bytes), ErrorCode::invalid_argument, "UTF-8"));
    TorchFacts many;
    for (int i = 0; i < 65; ++i) many["fact" + std::to_string(i)] = "x";
    EXPECT_TRUE(failed_with(encode(many, m_bytes), ErrorCode::invalid_argument));
    EXPECT_TRUE(failed_with(encode(k_facts, {}), ErrorCode::invalid_argument, "no PyTorch artifacts"));
    // For an object that is too large, only the size is checked.
    EXPECT_TRUE(failed_with(encode(k_facts, ByteView(m_bytes.data(), store::k_torch_bytes + 1)), ErrorCode::unsupported,
                            "1073741825 bytes, expected at most 1073741824"));
}

TEST_F(TorchArtifacts, AreClearedAloneAndWithEverything)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, m_bytes, m_trust)));
    EXPECT_EQ(store->clear({.kinds = {store::ArtifactKind::compiled}})->files(), 0U);
    EXPECT_EQ(store->plan_clear({.kinds = {store::ArtifactKind::torch}})->of(store::ArtifactKind::torch).files, 1U);
    EXPECT_EQ(store->clear({.kinds = {store::ArtifactKind::torch}})->of(store::ArtifactKind::torch).files, 1U);
    EXPECT_FALSE(fs::exists(path()));
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, m_bytes, m_trust)));
    EXPECT_EQ(store->clear(store::ClearRequest::everything())->of(store::ArtifactKind::torch).files, 1U);
}

TEST_F(TorchArtifacts, CountForTheFoldersBudget)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(put_torch(*store, k_facts, k_when, m_bytes, m_trust)));
    const auto pruned = take(store->prune({.bytes = 10}));
    EXPECT_EQ(pruned.removed.of(store::ArtifactKind::torch).files, 1U);
    EXPECT_EQ(pruned.after.files, 0U);
    EXPECT_FALSE(fs::exists(path()));
}

} // namespace
} // namespace warmgraph::test::torch_test
