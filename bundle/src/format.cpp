#include "format.hpp"

#include <algorithm>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::bundle {
namespace {

using namespace std::string_view_literals;

// Like the magic of an entry: a text conversion changes it, and so is detected.
constexpr std::string_view k_magic = "\x89WGBND\r\n"sv;
constexpr std::string_view k_header_domain = "warmgraph bundle 1"sv;
constexpr std::string_view k_signature_domain = "warmgraph bundle signature 1"sv;
constexpr std::string_view k_signature_block_domain = "warmgraph bundle signature block 1"sv;

namespace at {
constexpr std::size_t magic = 0, version = 8, flags = 12, index_offset = 16, index_stored = 24, index_raw = 32,
                      index_codec = 40, unused = 44, index_digest = 48, digest = 80, reserved = 112,
                      signature_kind = 128, key_id = 132, signature = 192, signature_seal = 256, end = 288;
} // namespace at
static_assert(at::end == k_header_bytes && at::signature - at::key_id == k_key_id_max);

template <class T>
void store_at(FileHeaderBytes& bytes, std::size_t offset, const T& value)
{
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

Digest digest_of_header(ByteView bytes)
{
    Sha256 hash;
    hash.update_field(k_header_domain).update(bytes.first(at::digest));
    return hash.finish();
}

/// Returns the digest of the signature block. It also covers the header's digest, so that the signature block of
/// another bundle does not fit.
Digest seal_of_signature_block(ByteView bytes)
{
    Sha256 hash;
    hash.update_field(k_signature_block_domain);
    hash.update(bytes.subspan(at::digest, at::signature_seal - at::digest));
    return hash.finish();
}

void append_text(Bytes& bytes, std::string_view text)
{
    append(bytes, std::uint64_t{text.size()});
    append(bytes, as_bytes(text));
}

/// Returns the message that is signed. Each length is fixed or stated, so different headers give different messages.
/// The header's digest covers the index, and the index covers the members by their digests.
Bytes message_of_header(const FileHeader& header)
{
    Bytes message;
    append_text(message, k_signature_domain);
    append(message, static_cast<std::uint32_t>(header.signature_kind));
    append_text(message, header.key_id);
    append(message, ByteView{header.digest.bytes});
    return message;
}

bool all_zero(ByteView bytes)
{
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Result<void> parse_signature_block(ByteView bytes, FileHeader& header)
{
    if (load<Digest>(bytes, at::signature_seal) != seal_of_signature_block(bytes))
        return fail(ErrorCode::corrupt, "the signature's digest does not match: the bundle is damaged");
    const auto kind = load<std::uint32_t>(bytes, at::signature_kind);
    if (kind > static_cast<std::uint32_t>(SignatureKind::ed25519))
        return fail(ErrorCode::corrupt, "signature kind {} is unknown", kind);
    header.signature_kind = static_cast<SignatureKind>(kind);
    const std::string_view field = as_text(bytes.subspan(at::key_id, k_key_id_max));
    header.key_id = field.substr(0, field.find('\0'));
    header.signature = load<SignatureBytes>(bytes, at::signature);
    const bool is_signed = header.signature_kind != SignatureKind::none;
    const std::size_t used = is_signed ? header.key_id.size() : 0;
    if ((is_signed && !is_key_id(header.key_id)) || !all_zero(as_bytes(field.substr(used))) ||
        (!is_signed && !all_zero(header.signature)))
        return fail(ErrorCode::corrupt, "the signature's key id or unused bytes are wrong");
    return {};
}

Result<void> check_header_sizes(const FileHeader& header, std::uint64_t file_size)
{
    if (header.index_raw > k_most_index)
        return fail(ErrorCode::corrupt, "the index has {} bytes, at most {} are read", header.index_raw, k_most_index);
    const bool lies_inside = header.index_offset >= k_header_bytes && header.index_offset <= file_size &&
                             header.index_stored == file_size - header.index_offset;
    if (!lies_inside)
        return fail(ErrorCode::corrupt,
                    "the bundle has {} bytes, but its header says {}: it is truncated, or has extra bytes", file_size,
                    header.file_size());
    if (header.index_codec == Codec::none ? header.index_raw != header.index_stored
                                          : header.index_raw / k_most_expansion > header.index_stored)
        return fail(ErrorCode::corrupt, "the index of {} bytes is stored in {}", header.index_raw, header.index_stored);
    return {};
}

/// Reads an index from front to back. After the first failed read, all reads fail.
class IndexReader {
public:
    explicit IndexReader(ByteView bytes) : m_rest(bytes) {}
    template <class T>
    T number()
    {
        const ByteView bytes = take(sizeof(T));
        return bytes.empty() ? T{} : load<T>(bytes);
    }
    ByteView take(std::uint64_t size)
    {
        if (size > m_rest.size()) m_failed = true;
        if (m_failed) return {};
        const ByteView bytes = m_rest.first(size);
        m_rest = m_rest.subspan(size);
        return bytes;
    }
    std::string_view text() { return as_text(take(number<std::uint32_t>())); }
    [[nodiscard]] bool failed() const noexcept { return m_failed; }
    [[nodiscard]] std::size_t left() const noexcept { return m_rest.size(); }

private:
    ByteView m_rest;
    bool m_failed = false;
};

constexpr std::size_t k_least_member = 4 + 4 + 8 + 8 + sizeof(Digest) + 4 + 1 + 4;

Result<void> check_member(const Member& member)
{
    const std::string shown = printable(member.name, 200);
    if (!is_member_name(member.name))
        return fail(ErrorCode::corrupt, "member '{}' has a name that is invalid or leads out of the folder", shown);
    const store::KindRow* const row = store::find_row(member.kind);
    if (row != nullptr && !tier_name(member.kind, member.name))
        return fail(ErrorCode::corrupt, "member '{}' has a name that is not valid for a {}", shown, row->noun);
    if (static_cast<std::uint32_t>(member.codec) > static_cast<std::uint32_t>(Codec::zstd))
        return fail(ErrorCode::corrupt, "member '{}': codec {} is unknown", shown,
                    static_cast<std::uint32_t>(member.codec));
    if (row != nullptr && member.size > row->most_bytes)
        return fail(ErrorCode::corrupt, "member '{}' has {} bytes, at most {} are read", shown, member.size,
                    row->most_bytes);
    if (member.codec == Codec::none ? member.size != member.stored
                                    : member.size / k_most_expansion > member.stored || member.stored == 0)
        return fail(ErrorCode::corrupt, "member '{}' of {} bytes is stored in {}, over the limit of {} to 1", shown,
                    member.size, member.stored, k_most_expansion);
    if (row == nullptr) return {};
    const bool has_head = reader_of(member.kind).head_extent != nullptr;
    if (has_head == member.head.empty())
        return fail(ErrorCode::corrupt, "member '{}': a {} must have {} head in the index", shown, row->noun,
                    has_head ? "a" : "no");
    return {};
}

Member read_member(IndexReader& reader)
{
    Member member;
    member.kind = static_cast<ArtifactKind>(reader.number<std::uint32_t>());
    member.codec = static_cast<Codec>(reader.number<std::uint32_t>());
    member.stored = reader.number<std::uint64_t>();
    member.size = reader.number<std::uint64_t>();
    if (const ByteView digest = reader.take(sizeof(Digest)); !digest.empty()) member.digest = load<Digest>(digest);
    member.name = reader.text();
    member.head = reader.take(reader.number<std::uint32_t>());
    return member;
}

Result<void> check_names(const std::vector<Member>& members)
{
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const Member& member : members) names.push_back(member.name);
    std::ranges::sort(names);
    if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
        return fail(ErrorCode::corrupt, "two members have the name '{}'", *twice);
    return {};
}

} // namespace

Result<FileHeaderBytes> to_bytes(FileHeader header, const SigningKey* sign_with)
{
    FileHeaderBytes bytes{};
    std::memcpy(bytes.data() + at::magic, k_magic.data(), k_magic.size());
    store_at(bytes, at::version, k_bundle_version);
    store_at(bytes, at::index_offset, header.index_offset);
    store_at(bytes, at::index_stored, header.index_stored);
    store_at(bytes, at::index_raw, header.index_raw);
    store_at(bytes, at::index_codec, static_cast<std::uint32_t>(header.index_codec));
    store_at(bytes, at::index_digest, header.index_digest.bytes);
    header.digest = digest_of_header(bytes);
    store_at(bytes, at::digest, header.digest.bytes);
    if (sign_with != nullptr) {
        header.signature_kind = sign_with->kind();
        header.key_id = sign_with->id();
        const auto made = sign_with->sign(message_of_header(header));
        if (!made) return within("cannot sign the bundle", made.error());
        store_at(bytes, at::signature_kind, static_cast<std::uint32_t>(header.signature_kind));
        std::memcpy(bytes.data() + at::key_id, header.key_id.data(), header.key_id.size());
        store_at(bytes, at::signature, *made);
    }
    store_at(bytes, at::signature_seal, seal_of_signature_block(bytes).bytes);
    return bytes;
}

Result<FileHeader> parse_header(ByteView bytes, std::optional<std::uint64_t> file_size)
{
    if (bytes.size() < k_header_bytes)
        return fail(ErrorCode::corrupt, "the bundle has {} bytes, its header alone takes {}", bytes.size(),
                    k_header_bytes);
    if (as_text(bytes.first(k_magic.size())) != k_magic)
        return fail(ErrorCode::corrupt, "the file is not a bundle: it does not start with a bundle's magic bytes");
    // Every later version keeps these first bytes and their digest, so that a newer bundle can be distinguished from a
    // damaged bundle.
    FileHeader header;
    header.digest = load<Digest>(bytes, at::digest);
    if (header.digest != digest_of_header(bytes))
        return fail(ErrorCode::corrupt, "the header's digest does not match: the bundle is damaged");
    if (const auto version = load<std::uint32_t>(bytes, at::version); version != k_bundle_version)
        return fail(ErrorCode::stale,
                    "the bundle has format {}, this version of warmgraph reads {}: create the bundle again", version,
                    k_bundle_version);
    if (load<std::uint32_t>(bytes, at::flags) != 0 || load<std::uint32_t>(bytes, at::unused) != 0 ||
        !all_zero(bytes.subspan(at::reserved, at::signature_kind - at::reserved)))
        return fail(ErrorCode::corrupt, "the header's unused bytes are not zero");
    header.index_offset = load<std::uint64_t>(bytes, at::index_offset);
    header.index_stored = load<std::uint64_t>(bytes, at::index_stored);
    header.index_raw = load<std::uint64_t>(bytes, at::index_raw);
    header.index_digest = load<Digest>(bytes, at::index_digest);
    const auto codec = load<std::uint32_t>(bytes, at::index_codec);
    if (codec > static_cast<std::uint32_t>(Codec::zstd))
        return fail(ErrorCode::corrupt, "the index has the unknown codec {}", codec);
    header.index_codec = static_cast<Codec>(codec);
    if (auto ok = check_header_sizes(header, file_size.value_or(header.file_size())); !ok)
        return std::unexpected(std::move(ok.error()));
    if (auto ok = parse_signature_block(bytes, header); !ok) return std::unexpected(std::move(ok.error()));
    return header;
}

Result<std::string> check_signature(const FileHeader& header, const cachefmt::Trust& trust)
{
    if (header.signature_kind == SignatureKind::none) return std::string{};
    const SigningKey* const key = trust.find(header.key_id);
    if (key == nullptr) return std::string{};
    if (key->kind() != header.signature_kind)
        return fail(ErrorCode::untrusted, "the bundle is signed with an {} key '{}', the accepted one is {}",
                    to_string(header.signature_kind), header.key_id, to_string(key->kind()));
    if (!key->verifies(message_of_header(header), header.signature))
        return fail(ErrorCode::untrusted,
                    "the bundle's signature was not made with key '{}': the bundle was signed with another key, or the "
                    "signature is forged",
                    header.key_id);
    return header.key_id;
}

Result<Index> parse_index(ByteView raw, std::uint64_t members_end)
{
    IndexReader reader{raw};
    Index index;
    index.created = reader.text();
    index.created_by = reader.text();
    const auto count = reader.number<std::uint64_t>();
    if (reader.failed() || count > k_most_members || count > reader.left() / k_least_member)
        return fail(ErrorCode::corrupt, "the index says {} members, {} bytes are left for them", count, reader.left());
    index.members.reserve(count);
    std::uint64_t offset = k_header_bytes;
    for (std::uint64_t i = 0; i < count; ++i) {
        Member member = read_member(reader);
        if (reader.failed()) return fail(ErrorCode::corrupt, "the index ends inside of member {} of {}", i, count);
        if (auto ok = check_member(member); !ok) return std::unexpected(std::move(ok.error()));
        member.offset = offset;
        if (member.stored > members_end - offset)
            return fail(ErrorCode::corrupt, "member '{}' of {} bytes at {} reaches past the members' end at {}",
                        member.name, member.stored, offset, members_end);
        offset += member.stored;
        index.members.push_back(member);
    }
    if (reader.left() != 0 || offset != members_end)
        return fail(ErrorCode::corrupt, "{} bytes of the index and {} bytes of the members belong to nothing",
                    reader.left(), members_end - offset);
    if (auto ok = check_names(index.members); !ok) return std::unexpected(std::move(ok.error()));
    return index;
}

void append_index_start(Bytes& index, std::string_view created, std::string_view created_by, std::uint64_t members)
{
    for (const std::string_view text : {created, created_by}) {
        append(index, static_cast<std::uint32_t>(text.size()));
        append(index, as_bytes(text));
    }
    append(index, members);
}

void append_member(Bytes& index, const Member& member)
{
    append(index, static_cast<std::uint32_t>(member.kind));
    append(index, static_cast<std::uint32_t>(member.codec));
    append(index, member.stored);
    append(index, member.size);
    append(index, ByteView{member.digest.bytes});
    append(index, static_cast<std::uint32_t>(member.name.size()));
    append(index, as_bytes(member.name));
    append(index, static_cast<std::uint32_t>(member.head.size()));
    append(index, member.head);
}

} // namespace warmgraph::bundle
