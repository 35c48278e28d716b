// PyTorch's artifacts in a bundle: they are only written into signed bundles, and only used when an accepted key signed
// the bundle.
#include "bundle_fixture.hpp"
#include "warmgraph/bundle/bundle_tier.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::test::torch_member_test {
namespace {

class TorchMember : public BundleTest {
protected:
    TorchMember() : m_origin(LocalStore::open(m_dir.path() / "origin").value())
    {
        fill(*m_origin);
        take(put_torch(*m_origin, m_facts, "2026-11-25T06:00:00Z", m_bytes, m_trust));
    }
    static cachefmt::Trust trust_of(const std::string& id)
    {
        return {.sign_with =
                    std::make_shared<const SigningKey>(SigningKey::generate(id, SignatureKind::hmac_sha256).value())};
    }
    /// Makes a signed bundle with the three entries, followed by PyTorch's artifacts.
    Bytes signed_bundle()
    {
        Bytes bytes;
        bundle::Writer writer(bundle::into_bytes(bytes), {.sign_with = m_trust.sign_with.get()});
        EXPECT_TRUE(succeeded(bundle::gather(writer, keys(), getter(*m_origin))));
        const auto added = bundle::gather(writer, std::vector{m_name}, getter(*m_origin));
        EXPECT_TRUE(succeeded(added));
        EXPECT_EQ(added->moved.at(store::ArtifactKind::torch).count, 1U);
        EXPECT_TRUE(succeeded(writer.finish()));
        return bytes;
    }
    /// Makes the bundle of a hostile writer or an old version: it has PyTorch's artifacts, but no signature.
    Bytes unsigned_bundle()
    {
        const Bytes object = getter(*m_origin)(m_name).value().value();
        return assemble_bundle({raw_member(7, to_text(m_name), object)});
    }

    const store::TorchFacts m_facts{{"torch", "2.11.0"}, {"model", "llama"}};
    const store::ArtifactName m_name = store::torch_name(m_facts);
    const Bytes m_bytes = Bytes(50'000, std::byte{'p'});
    const cachefmt::Trust m_trust = trust_of("release");
    std::unique_ptr<LocalStore> m_origin;
};

TEST_F(TorchMember, GoesFromASignedBundleIntoTheFolderAndOutAgain)
{
    const Bytes bytes = signed_bundle();
    const auto opened = open_bundle(bytes, m_trust).value();
    const Member* const member = opened->find(to_text(m_name));
    ASSERT_NE(member, nullptr);
    EXPECT_LT(member->stored, m_bytes.size()) << "compressed, as other members";
    EXPECT_TRUE(succeeded(opened->verify(*member)));
    const auto store = open();
    const auto loaded = take(bundle::unpack(*opened, store->tier(), k_all));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::torch).count, 1U);
    EXPECT_THAT(loaded.skipped, IsEmpty());
    EXPECT_EQ(find_torch(*store, m_facts, m_trust).value(), m_bytes);
}

TEST_F(TorchMember, GoesIntoNoUnsignedBundle)
{
    Bytes bytes;
    bundle::Writer writer(bundle::into_bytes(bytes));
    EXPECT_TRUE(failed_with(bundle::gather(writer, std::vector{m_name}, getter(*m_origin)), ErrorCode::invalid_argument,
                            "WARMGRAPH_SIGN_KEY_FILE"));
    EXPECT_EQ(writer.members(), 0U);
}

TEST_F(TorchMember, OfAnUnsignedBundleIsSkippedByName)
{
    const Bytes bytes = unsigned_bundle();
    const auto opened = open_bundle(bytes, m_trust).value();
    const auto store = open();
    const auto loaded = take(bundle::unpack(*opened, store->tier(), k_all));
    ASSERT_EQ(loaded.skipped.size(), 1U);
    EXPECT_EQ(loaded.skipped[0].name, to_text(m_name));
    EXPECT_THAT(loaded.skipped[0].why, HasSubstr("this one is not signed"));
    EXPECT_EQ(find_torch(*store, m_facts, m_trust).value(), std::nullopt);
}

TEST_F(TorchMember, OfABundleWhoseKeyIsNotAcceptedIsSkippedAndTheRestIsLoaded)
{
    const Bytes bytes = signed_bundle();
    const auto opened = open_bundle(bytes, trust_of("another")).value();
    const auto store = open();
    const auto loaded = take(bundle::unpack(*opened, store->tier(), k_all));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::entries).count, 3U);
    ASSERT_EQ(loaded.skipped.size(), 1U);
    EXPECT_THAT(loaded.skipped[0].why, HasSubstr("key 'release' is not accepted"));
}

TEST_F(TorchMember, ThatIsDamagedIsSkipped)
{
    const Bytes whole = signed_bundle();
    const auto at = open_bundle(whole, m_trust).value()->find(to_text(m_name))->offset;
    Bytes bytes = whole;
    bytes[at + 20] ^= std::byte{1};
    const auto opened = open_bundle(bytes, m_trust).value();
    const auto store = open();
    const auto loaded = take(bundle::unpack(*opened, store->tier(), k_all));
    ASSERT_EQ(loaded.skipped.size(), 1U);
    EXPECT_THAT(loaded.skipped[0].why, HasSubstr("damaged"));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::entries).count, 3U);
}

TEST_F(TorchMember, IsReadWhereItLiesFromASignedBundleAlone)
{
    const Bytes with_key = signed_bundle(), without = unsigned_bundle();
    const auto layered = [&](const Bytes& bytes, const cachefmt::Trust& trust, const std::string& folder) {
        auto store = LocalStore::open(m_dir.path() / folder).value();
        store->add_layer(std::make_shared<bundle::BundleTier>(open_bundle(bytes, trust).value(), "test.wgb"), trust);
        return store;
    };
    const auto trusted = layered(with_key, m_trust, "a");
    EXPECT_EQ(find_torch(*trusted, m_facts, m_trust).value(), m_bytes);
    EXPECT_FALSE(fs::exists(m_dir.path() / "a" / "torch")) << "nothing is unpacked";
    EXPECT_EQ(find_torch(*layered(without, m_trust, "b"), m_facts, m_trust).value(), std::nullopt);
    EXPECT_EQ(find_torch(*layered(with_key, trust_of("another"), "c"), m_facts, m_trust).value(), std::nullopt);
}

TEST_F(TorchMember, IsCopiedIntoASignedBundleAndLeftOutOfAnother)
{
    const Bytes bytes = signed_bundle();
    const auto opened = open_bundle(bytes, m_trust).value();
    Bytes copy;
    bundle::Writer unsigned_writer(bundle::into_bytes(copy));
    const auto left_out = take(bundle::copy_members(*opened, unsigned_writer, k_all));
    ASSERT_EQ(left_out.skipped.size(), 1U);
    EXPECT_THAT(left_out.skipped[0].why, HasSubstr("give a key"));
    EXPECT_EQ(left_out.moved.at(store::ArtifactKind::entries).count, 3U);
    bundle::Writer signed_writer(bundle::into_bytes(copy), {.sign_with = m_trust.sign_with.get()});
    const auto copied = take(bundle::copy_members(*opened, signed_writer, k_all));
    EXPECT_EQ(copied.moved.at(store::ArtifactKind::torch).count, 1U);
    ASSERT_TRUE(succeeded(signed_writer.finish()));
    EXPECT_TRUE(open_bundle(copy, m_trust).value()->find(to_text(m_name)) != nullptr);
}

/// Promise H19: if the member was copied, the signature of the new bundle would vouch for it.
TEST_F(TorchMember, IsNotCopiedIntoASignedBundleWhereLoadingRefusesIt)
{
    const Bytes unsigned_one = unsigned_bundle(), strangers = signed_bundle();
    const auto mine = trust_of("mine");
    for (const Bytes& bytes : {unsigned_one, strangers}) {
        const auto opened = open_bundle(bytes, mine).value();
        Bytes copy;
        bundle::Writer writer(bundle::into_bytes(copy), {.sign_with = mine.sign_with.get()});
        const auto copied = take(bundle::copy_members(*opened, writer, k_all));
        EXPECT_FALSE(copied.moved.contains(store::ArtifactKind::torch));
        ASSERT_EQ(copied.skipped.size(), 1U);
        EXPECT_THAT(copied.skipped[0].why, HasSubstr("loaded only from a bundle that is signed with an accepted key"));
    }
}

TEST_F(TorchMember, OverTheCapMakesTheBundleCorrupt)
{
    const Bytes object = getter(*m_origin)(m_name).value().value();
    RawMember member = raw_member(7, to_text(m_name), object);
    member.codec = 1;
    member.size = store::k_torch_cap + 1;
    EXPECT_TRUE(failed_with(open_bundle(assemble_bundle({member})), ErrorCode::corrupt, "at most"));
}

} // namespace
} // namespace warmgraph::test::torch_member_test
