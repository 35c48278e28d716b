// Tests the bytes of a bundle: a bundle that was written is read with the same contents, and any other bytes are
// refused.
#include <sys/stat.h>

#include "bundle_fixture.hpp"
#include "warmgraph/cachefmt/compression.hpp"

namespace warmgraph::test::format_test {
namespace {

class BundleFormat : public BundleTest {
protected:
    BundleFormat() { fill(*m_store); }
    std::unique_ptr<LocalStore> m_store = open();
};

TEST_F(BundleFormat, HoldsEntriesWithTheirImagesOnce)
{
    Transfer transfer;
    const Bytes bytes = make(*m_store, {}, &transfer);
    const auto opened = take(open_bundle(bytes));
    std::vector<std::string> names;
    for (const Member& member : opened->members()) names.emplace_back(member.name);
    EXPECT_THAT(names, ElementsAre(image_name(m_shared), entry_name(m_entries[0]), entry_name(m_entries[1]),
                                   image_name(m_own), entry_name(m_entries[2])));
    EXPECT_EQ(transfer.moved.at(store::ArtifactKind::entries).count, 3U);
    EXPECT_EQ(transfer.moved.at(store::ArtifactKind::images).bytes, m_shared.size() + m_own.size());
    EXPECT_EQ(opened->created_by(), "warmgraph " WARMGRAPH_VERSION);
    for (const Member& member : opened->members()) {
        EXPECT_TRUE(succeeded(opened->verify(member))) << member.name;
        const auto in_folder = m_store->tier().get(*bundle::tier_name(member.kind, member.name), {1 << 28});
        EXPECT_EQ(opened->content(member).value(), (**in_folder).bytes.value()) << member.name;
    }
    EXPECT_LT(opened->find(image_name(m_shared))->stored, m_shared.size() / 10);
    EXPECT_EQ(opened->find("images/none"), nullptr);
}

TEST_F(BundleFormat, HasTheGuardsInTheIndex)
{
    const Bytes bytes = make(*m_store);
    /// Replaces all bytes between the header and the index.
    Bytes damaged = bytes;
    const auto index = load<std::uint64_t>(ByteView{bytes}, bundle_at::index_offset);
    std::fill(damaged.begin() + bundle_at::end, damaged.begin() + static_cast<std::ptrdiff_t>(index), std::byte{0});
    const auto opened = take(open_bundle(damaged));
    const auto header = take(opened->header(*opened->find(entry_name(m_entries[2]))));
    EXPECT_EQ(header.guards, m_entries[2].header.guards);
    for (const Member& member : opened->members())
        EXPECT_TRUE(failed_with(opened->content(member), ErrorCode::corrupt)) << member.name;
}

// A source that counts the bytes that are read from it.
class CountingSource final : public bundle::Source {
public:
    CountingSource(ByteView bytes, std::uint64_t& read) : m_bytes(bundle::over_bytes(bytes)), m_read(read) {}
    std::uint64_t size() const noexcept override { return m_bytes->size(); }
    Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override
    {
        m_read += into.size();
        return m_bytes->read(offset, into);
    }

private:
    std::unique_ptr<bundle::Source> m_bytes;
    std::uint64_t& m_read;
};

TEST_F(BundleFormat, ReadsOneMemberWithoutTheOthers)
{
    const Bytes bytes = make(*m_store, {.compress_above = 1 << 30});
    std::uint64_t read = 0;
    const auto opened = take(Bundle::open(std::make_unique<CountingSource>(bytes, read)));
    EXPECT_LT(read, bytes.size() - m_shared.size()) << "opening reads no member";
    read = 0;
    const Member& own = *opened->find(image_name(m_own));
    EXPECT_EQ(opened->content(own).value(), m_own);
    EXPECT_EQ(read, m_own.size());
}

TEST_F(BundleFormat, RefusesEveryFlippedBitOfHeaderAndIndexAndEveryFlippedByteOfAMember)
{
    const Bytes bytes = make(*m_store, {.compress_above = 1 << 30});
    const auto index = load<std::uint64_t>(ByteView{bytes}, bundle_at::index_offset);
    Bytes damaged = bytes;
    const auto opens = [&] { return open_bundle(damaged).has_value(); };
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (at >= bundle_at::end && at < index) continue;
        for (int bit = 0; bit < 8; ++bit) {
            damaged[at] = bytes[at] ^ std::byte(1U << bit);
            ASSERT_FALSE(opens()) << "byte " << at << ", bit " << bit;
        }
        damaged[at] = bytes[at];
    }
    ASSERT_TRUE(opens());
    for (std::size_t at = bundle_at::end; at < index; at += 977) {
        damaged[at] ^= std::byte{1};
        const auto opened = take(open_bundle(damaged));
        int refused = 0;
        for (const Member& member : opened->members()) refused += opened->content(member) ? 0 : 1;
        EXPECT_EQ(refused, 1) << "of the member at byte " << at << ", and no other";
        damaged[at] = bytes[at];
    }
}

TEST_F(BundleFormat, RefusesEveryTruncationAndWhatIsTooLong)
{
    const Bytes bytes = make(*m_store);
    for (std::size_t size = 0; size < bytes.size(); ++size)
        ASSERT_TRUE(failed_with(open_bundle(ByteView{bytes}.first(size)), ErrorCode::corrupt)) << size;
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_TRUE(failed_with(open_bundle(longer), ErrorCode::corrupt, "truncated, or has extra bytes"));
}

TEST_F(BundleFormat, TellsANewerOneFromADamagedOne)
{
    Bytes bytes = make(*m_store);
    bytes[bundle_at::version] = std::byte{2};
    EXPECT_TRUE(failed_with(open_bundle(bytes), ErrorCode::corrupt, "damaged"));
    reseal_bundle(bytes);
    EXPECT_TRUE(failed_with(open_bundle(bytes), ErrorCode::stale, "has format 2, this version of warmgraph reads 1"));
}

Result<std::unique_ptr<Bundle>> open_hostile(const Bytes& bytes) { return Bundle::open(bundle::over_bytes(bytes)); }

TEST(HostileBundle, WithANameThatLeadsElsewhereIsRefused)
{
    const Bytes stored = image_of("x");
    const std::string hex = to_hex(sha256(stored));
    ASSERT_TRUE(succeeded(open_hostile(assemble_bundle({raw_member(2, "images/" + hex, stored)}))));
    for (const std::string& name :
         {"../" + hex, "images/../" + hex, "/images/" + hex, "images//" + hex, std::string("images/.tmp"),
          "./images/" + hex, std::string(), std::string("images\0/a", 9), "images/" + hex + "/", std::string("a\nb"),
          "images/" + std::string(64, 'A'), "entries/tiny/world1global_rank0/decode/" + hex, "images/-" + hex})
        EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({raw_member(2, name, stored)})), ErrorCode::corrupt))
            << name;
    for (const char* name : {"../../etc/passwd", "/etc/passwd", "profile/../x", "profile/.hidden"})
        EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({raw_member(6, name, stored)})), ErrorCode::corrupt))
            << "also of a kind that this version takes nothing of: " << name;
}

TEST(HostileBundle, WithTwoMembersOfOneNameIsRefused)
{
    const Bytes stored = image_of("x");
    const RawMember member = raw_member(2, "images/" + to_hex(sha256(stored)), stored);
    RawMember constant = member;
    constant.kind = 3;
    EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({member, member})), ErrorCode::corrupt, "two members"));
    EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({member, constant})), ErrorCode::corrupt, "two members"));
}

TEST(HostileBundle, WithSizesThatLieIsRefusedBeforeTheyAreAllocated)
{
    const Bytes stored = image_of("0123456789");
    const RawMember whole = raw_member(2, "images/" + to_hex(sha256(stored)), stored);
    for (const std::uint64_t size :
         std::vector<std::uint64_t>{0, 9, 11, 1ULL << 31, 0xFFFF'FFFFULL, 1ULL << 63, ~0ULL - 1}) {
        for (const bool of_stored : {true, false}) {
            RawMember member = whole;
            (of_stored ? member.stored_size : member.size) = size;
            EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({member})), ErrorCode::corrupt)) << size;
            member.stored_size = member.size = size; // both sizes are wrong, but equal
            EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({member})), ErrorCode::corrupt)) << size;
        }
        EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({whole}, size)), ErrorCode::corrupt)) << size;
        for (const std::size_t at : {bundle_at::index_offset, bundle_at::index_stored, bundle_at::index_raw}) {
            Bytes bytes = assemble_bundle({whole});
            std::memcpy(bytes.data() + at, &size, sizeof size);
            reseal_bundle(bytes);
            EXPECT_TRUE(failed_with(open_hostile(bytes), ErrorCode::corrupt)) << "at " << at << ": " << size;
        }
    }
    // The member's size is a thousand times its stored size. A compressed frame of zeros really expands so far.
    const Bytes zeros(1 << 20);
    RawMember bomb = raw_member(2, "images/" + to_hex(sha256(zeros)), cachefmt::compress(zeros, 3, 0).value());
    bomb.codec = 1;
    bomb.size = zeros.size();
    ASSERT_GT(bomb.size, 1000 * bomb.stored_size);
    EXPECT_TRUE(failed_with(open_hostile(assemble_bundle({bomb})), ErrorCode::corrupt, "over the limit of 64 to 1"));
    bomb.size = 64 * bomb.stored_size;               // the frame expands to more than this
    const Bytes assembled = assemble_bundle({bomb}); // the bytes must live as long as the open bundle
    const auto opened = open_hostile(assembled);
    EXPECT_TRUE(!opened || failed_with((*opened)->content((*opened)->members().front()), ErrorCode::corrupt));
}

TEST(HostileBundle, WithAMemberOfAKindThatIsNotKnownIsReadAllTheSame)
{
    const Bytes stored = image_of("x");
    const Bytes bytes =
        assemble_bundle({raw_member(99, "new/a-b_c.1", stored), raw_member(98, "newer/with-a-head", stored)});
    const auto opened = take(open_hostile(bytes));
    for (const Member& member : opened->members()) {
        EXPECT_TRUE(failed_with(opened->verify(member), ErrorCode::unsupported, "cannot verify"));
        EXPECT_EQ(opened->content(member).value(), stored);
    }
}

TEST(HostileBundle, WithAnotherImageUnderADigestDoesNotVerify)
{
    const Bytes stored = image_of("x"), other = image_of("y");
    const Bytes bytes = assemble_bundle({raw_member(2, "images/" + to_hex(sha256(other)), stored)});
    const auto opened = take(open_hostile(bytes));
    EXPECT_TRUE(failed_with(opened->verify(opened->members().front()), ErrorCode::corrupt, "its name says"));
}

TEST_F(BundleFormat, IsSignedAsAWhole)
{
    for (const SignatureKind kind : {SignatureKind::hmac_sha256, SignatureKind::ed25519}) {
        const auto key = std::make_shared<const SigningKey>(SigningKey::generate("release", kind).value());
        const auto other = std::make_shared<const SigningKey>(SigningKey::generate("release", kind).value());
        const Bytes bytes = make(*m_store, {.sign_with = key.get()});
        const auto opened = take(open_bundle(bytes, {{}, {key}, false}));
        EXPECT_EQ(opened->signed_by(), "release");
        EXPECT_EQ(open_bundle(bytes).value()->signed_by(), "") << "nobody knows the key";
        EXPECT_EQ(open_bundle(bytes).value()->key_id(), "release");
        EXPECT_TRUE(
            failed_with(open_bundle(bytes, {{}, {other}, false}), ErrorCode::untrusted, "or the signature is forged"));
        // Puts this bundle's signature over the index of another bundle.
        Bytes forged = make(*m_store, {.compress_above = 1 << 30});
        std::memcpy(forged.data() + 128, bytes.data() + 128, 128);
        reseal_bundle(forged);
        EXPECT_TRUE(
            failed_with(open_bundle(forged, {{}, {key}, false}), ErrorCode::untrusted, "or the signature is forged"));
    }
}

TEST_F(BundleFormat, OfNothingIsNone)
{
    Bytes bytes;
    bundle::Writer writer(bundle::into_bytes(bytes));
    EXPECT_TRUE(failed_with(writer.finish(), ErrorCode::not_found, "nothing"));
}

TEST_F(BundleFormat, FileIsThereAsAWholeOrNotAtAll)
{
    const fs::path path = m_dir.path() / "cache.wgb";
    write(path, "what was there");
    {
        auto sink = take(bundle::into_file(path));
        bundle::Writer writer(std::move(sink));
        ASSERT_TRUE(succeeded(bundle::gather(writer, keys(), getter(*m_store))));
        EXPECT_EQ(text_of(path), "what was there");
    }
    EXPECT_EQ(names_in(m_dir.path()), (std::vector<std::string>{"cache", "cache.wgb"})) << "nothing is left over";
    bundle::Writer writer(bundle::into_file(path).value());
    ASSERT_TRUE(succeeded(bundle::gather(writer, keys(), getter(*m_store))));
    ASSERT_TRUE(succeeded(writer.finish()));
    EXPECT_EQ(names_in(m_dir.path()), (std::vector<std::string>{"cache", "cache.wgb"}));
    const auto opened = take(Bundle::open(bundle::open_file(path).value()));
    EXPECT_EQ(opened->members().size(), 5U);
    const Member& last = opened->members().back();
    fs::resize_file(path, last.offset + 1);
    EXPECT_TRUE(succeeded(opened->content(opened->members().front())));
    EXPECT_TRUE(failed_with(opened->content(last), ErrorCode::corrupt, "ends at byte"))
        << "cut off while it is open: no signal ends the process";
}

TEST_F(BundleFormat, FileThatOthersMayWriteIsNotTrusted)
{
    const fs::path path = m_dir.path() / "cache.wgb";
    write(path, as_text(make(*m_store)));
    using bundle::Ownership;
    fs::permissions(path, fs::perms(0640));
    EXPECT_TRUE(succeeded(bundle::open_file(path, Ownership::trusted)));
    fs::permissions(path, fs::perms(0660));
    EXPECT_TRUE(failed_with(bundle::open_file(path, Ownership::trusted), ErrorCode::permission_denied, "chmod go-w"));
    EXPECT_TRUE(succeeded(bundle::open_file(path, Ownership::anybody))) << "to be looked at";
    EXPECT_TRUE(failed_with(bundle::open_file(m_dir.path() / "none.wgb"), ErrorCode::not_found));
    EXPECT_TRUE(failed_with(bundle::open_file(m_dir.path()), ErrorCode::io_failed, "not a regular file"));
    ASSERT_EQ(::mkfifo((m_dir.path() / "pipe").c_str(), 0600), 0);
    EXPECT_TRUE(failed_with(bundle::open_file(m_dir.path() / "pipe"), ErrorCode::io_failed, "not a regular file"))
        << "a service does not wait for who writes into it";
}

} // namespace
} // namespace warmgraph::test::format_test
