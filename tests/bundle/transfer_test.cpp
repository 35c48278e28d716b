// Objects are moved from a folder into a bundle, and from there into another folder.
#include "bundle_fixture.hpp"

namespace warmgraph::test::transfer_test {
namespace {

class BundleTransfer : public BundleTest {
protected:
    BundleTransfer() { fill(*m_store); }
    std::unique_ptr<LocalStore> other(const StoreOptions& options = {}) const
    {
        return LocalStore::open(m_dir.path() / "other", options).value();
    }
    static std::string why(const std::vector<bundle::UnmovedArtifact>& left, const std::string& name)
    {
        for (const auto& [of, text] : left)
            if (of == name) return text;
        return {};
    }
    std::unique_ptr<LocalStore> m_store = open();
};

TEST_F(BundleTransfer, FillsAnotherFolderWithTheSameFiles)
{
    const Bytes bytes = make(*m_store);
    const auto bundle = open_bundle(bytes).value();
    const auto store = other();
    const auto loaded = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::entries).count, 3U);
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::images).count, 2U);
    EXPECT_THAT(loaded.skipped, IsEmpty());
    auto here = snapshot(m_root), there = snapshot(m_dir.path() / "other");
    for (auto* files : {&here, &there}) std::erase_if(*files, [](const auto& f) { return f.first.starts_with("."); });
    EXPECT_EQ(there, here);
    EXPECT_THAT(store->check().value(), IsEmpty());
}

TEST_F(BundleTransfer, ReplacesNothing)
{
    const Bytes bytes = make(*m_store);
    const auto bundle = open_bundle(bytes).value();
    const auto store = other();
    const Entry mine = make_entry(k_decode, 1, "mine", {});
    const Entry refused = make_tombstone(k_decode, 2);
    ASSERT_TRUE(succeeded(store->publish(mine)));
    ASSERT_TRUE(succeeded(store->publish(refused)));
    const auto loaded = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::entries).count, 1U);
    EXPECT_EQ(why(loaded.there, entry_name(mine)), "it is already in the folder");
    EXPECT_EQ((**store->entry(mine.header.key)).header.info.verification, "mine");
    EXPECT_EQ((**store->entry(refused.header.key)).header.kind, cachefmt::EntryKind::tombstone);
    const auto again = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_TRUE(again.moved.empty());
}

TEST_F(BundleTransfer, ExtractsNothingOfWhatIsNotWanted)
{
    const Bytes bytes = make(*m_store);
    const auto bundle = open_bundle(bytes).value();
    const auto store = other();
    const auto loaded = take(bundle::unpack(*bundle, store->tier(), [](const EntryHeader& header) {
        return header.key.function.function == "prompt" ? std::string("another device") : std::string();
    }));
    EXPECT_EQ(why(loaded.skipped, entry_name(m_entries[2])), "another device");
    EXPECT_EQ(why(loaded.skipped, image_name(m_own)), "no loaded entry needs it");
    EXPECT_FALSE(fs::exists(m_dir.path() / "other" / "images" / to_hex(sha256(m_own)).substr(0, 2)));
    EXPECT_FALSE(fs::exists(m_dir.path() / "other" / k_prompt.model_info / k_prompt.rank / "prompt"));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::entries).count, 2U);
}

TEST_F(BundleTransfer, TakesNoTombstonesAndNothingDamaged)
{
    const Entry refused = make_tombstone(k_decode, 7);
    ASSERT_TRUE(succeeded(m_store->publish(refused)));
    m_entries.push_back(refused);
    flip(path_of(m_own), 3);
    Transfer transfer;
    const Bytes bytes = make(*m_store, {}, &transfer);
    EXPECT_THAT(why(transfer.skipped, entry_name(refused)), HasSubstr("records of refusals are not copied"));
    EXPECT_THAT(why(transfer.skipped, entry_name(m_entries[2])), HasSubstr("missing or damaged"));
    EXPECT_EQ(open_bundle(bytes).value()->members().size(), 3U);
    // Loading also skips tombstones, because a hostile bundle may contain one.
    const auto file = m_store->tier().get(refused.header.key, {1 << 20});
    const Bytes entry = (**file).bytes.value();
    const Bytes hostile = assemble_bundle({raw_member(1, entry_name(refused), {}, entry)});
    const auto loaded = take(bundle::unpack(*open_bundle(hostile).value(), other()->tier(), k_all));
    EXPECT_THAT(why(loaded.skipped, entry_name(refused)), HasSubstr("tombstone"));
}

TEST_F(BundleTransfer, SkipsWhatIsDamagedAndLoadsTheRest)
{
    Bytes bytes = make(*m_store);
    const auto offset = open_bundle(bytes).value()->find(image_name(m_own))->offset;
    bytes[offset] ^= std::byte{1};
    const auto store = other();
    const auto loaded = take(bundle::unpack(*open_bundle(bytes).value(), store->tier(), k_all));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::entries).count, 2U);
    EXPECT_THAT(why(loaded.skipped, entry_name(m_entries[2])), HasSubstr("digest does not match"));
    EXPECT_THAT(store->check().value(), IsEmpty());
}

/// Otherwise one damaged image would make `bundle merge` and `bundle strip` fail, or would be copied into the new
/// bundle.
TEST_F(BundleTransfer, CopiesNoGraphWhoseImageIsDamaged)
{
    Bytes bytes = make(*m_store);
    const auto copy = [&] {
        Bytes copied;
        bundle::Writer writer(bundle::into_bytes(copied));
        const auto copying = bundle::copy_members(*open_bundle(bytes).value(), writer, k_all);
        EXPECT_TRUE(succeeded(copying));
        EXPECT_TRUE(succeeded(writer.finish()));
        EXPECT_EQ(copying->moved.at(store::ArtifactKind::entries).count, 2U);
        EXPECT_THAT(why(copying->skipped, entry_name(m_entries[2])), HasSubstr("digest"));
        const auto opened = open_bundle(copied).value();
        for (const Member& member : opened->members()) EXPECT_TRUE(succeeded(opened->verify(member))) << member.name;
    };
    const auto offset = open_bundle(bytes).value()->find(image_name(m_own))->offset;
    bytes[offset] ^= std::byte{1};
    copy();
}

TEST_F(BundleTransfer, TakesOnlySignedEntriesWhereThatIsRequired)
{
    const auto key =
        std::make_shared<const SigningKey>(SigningKey::generate("release", SignatureKind::hmac_sha256).value());
    StoreOptions signing;
    signing.trust = {key, {}, true};
    auto signer = LocalStore::open(m_dir.path() / "signed", signing).value();
    for (const Bytes& image : {m_shared, m_own}) ASSERT_TRUE(succeeded(signer->publish_image(image)));
    ASSERT_TRUE(succeeded(signer->publish(m_entries[0])));
    Bytes bytes;
    bundle::Writer writer(bundle::into_bytes(bytes));
    ASSERT_TRUE(succeeded(bundle::gather(writer, {m_entries[0].header.key}, getter(*signer))));
    ASSERT_TRUE(succeeded(bundle::gather(writer, {m_entries[2].header.key}, getter(*m_store))));
    ASSERT_TRUE(succeeded(writer.finish()));
    const auto bundle = open_bundle(bytes, {{}, {key}, true}).value();
    const auto store = other(signing);
    const auto loaded = take(bundle::unpack(*bundle, store->tier(), k_all));
    EXPECT_EQ(loaded.moved.at(store::ArtifactKind::entries).count, 1U);
    EXPECT_THAT(why(loaded.skipped, entry_name(m_entries[2])), HasSubstr("is not signed"));
    EXPECT_TRUE((*store->entry(m_entries[0].header.key)).has_value()) << "its signature came with it";
}

TEST_F(BundleTransfer, CopiesWhatIsWantedIntoAnotherBundle)
{
    const Bytes all = make(*m_store);
    const auto bundle = open_bundle(all).value();
    Bytes bytes;
    bundle::Writer writer(bundle::into_bytes(bytes));
    const auto only_decode = [](const EntryHeader& header) {
        return header.key.function.function == "decode" ? std::string() : std::string("not wanted");
    };
    const auto copied = take(bundle::copy_members(*bundle, writer, only_decode));
    EXPECT_EQ(why(copied.skipped, entry_name(m_entries[2])), "not wanted");
    const auto merged = take(bundle::copy_members(*bundle, writer, k_all));
    EXPECT_EQ(merged.moved.at(store::ArtifactKind::entries).count, 1U) << "the rest is in already";
    ASSERT_TRUE(succeeded(writer.finish()));
    const auto opened = open_bundle(bytes).value();
    EXPECT_EQ(opened->members().size(), bundle->members().size());
    for (const Member& member : opened->members()) EXPECT_TRUE(succeeded(opened->verify(member))) << member.name;
}

/// Promise H19: unpack() does not load either of them.
TEST_F(BundleTransfer, CopiesNeitherTombstonesNorWhatNeedsADamagedImage)
{
    const Bytes whole = make(*m_store);
    const auto opened = open_bundle(whole).value();
    std::vector<RawMember> members;
    for (const Member& member : opened->members()) {
        Bytes body = opened->content(member).value();
        body.erase(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(member.head.size()));
        if (member.name == image_name(m_own)) body = image_of("other code");
        members.push_back(
            raw_member(static_cast<std::uint32_t>(member.kind), std::string(member.name), body, member.head));
    }
    const Entry tombstone = make_tombstone(k_decode, 7);
    const Bytes stored = cachefmt::encode(tombstone).value();
    members.push_back(raw_member(1, entry_name(tombstone), {}, stored));
    const Bytes bytes = assemble_bundle(members);
    const auto hostile = open_bundle(bytes).value();
    Bytes copy;
    bundle::Writer writer(bundle::into_bytes(copy));
    const auto copied = take(bundle::copy_members(*hostile, writer, k_all));
    EXPECT_EQ(copied.moved.at(store::ArtifactKind::entries).count, 2U);
    EXPECT_THAT(why(copied.skipped, entry_name(m_entries[2])), HasSubstr("SHA-256"));
    EXPECT_THAT(why(copied.skipped, entry_name(tombstone)), HasSubstr("tombstone"));
}

} // namespace
} // namespace warmgraph::test::transfer_test
