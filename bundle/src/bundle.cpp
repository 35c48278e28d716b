#include "warmgraph/bundle/bundle.hpp"

#include <algorithm>
#include <numeric>

#include "format.hpp"
#include "warmgraph/cachefmt/compression.hpp"

namespace warmgraph::bundle {

struct Bundle::Impl {
    std::unique_ptr<Source> source;
    cachefmt::Trust trust;
    FileHeader header;
    Bytes index_bytes; ///< the bytes of the index; names and heads point into them
    Index index;
    std::vector<std::uint32_t> by_name; ///< indices of members, sorted by name
    std::string signed_by;
};

namespace {

Result<Bytes> read_bytes(const Source& source, std::uint64_t offset, std::uint64_t size)
{
    Bytes bytes(size);
    if (auto ok = source.read(offset, bytes); !ok) return std::unexpected(std::move(ok.error()));
    return bytes;
}

Result<Bytes> expand(Bytes stored, Codec codec, std::uint64_t size)
{
    if (codec == Codec::none) return stored;
    const auto raw = cachefmt::decompress(stored, size);
    if (!raw) return std::unexpected(raw.error());
    return Bytes(raw->view().begin(), raw->view().end());
}

Result<FileHeader> read_file_header(const Source& source)
{
    const auto bytes = read_bytes(source, 0, std::min<std::uint64_t>(source.size(), k_header_bytes));
    if (!bytes) return std::unexpected(bytes.error());
    return parse_header(*bytes, source.size());
}

Result<Bytes> read_index(const Source& source, const FileHeader& header)
{
    auto stored = read_bytes(source, header.index_offset, header.index_stored);
    if (!stored) return stored;
    if (sha256(*stored) != header.index_digest)
        return fail(ErrorCode::corrupt, "the index's digest does not match: the bundle is damaged");
    auto raw = expand(std::move(*stored), header.index_codec, header.index_raw);
    if (!raw) return within("the index", raw.error());
    return raw;
}

} // namespace

Bundle::Bundle(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
Bundle::~Bundle() = default;

Result<std::unique_ptr<Bundle>> Bundle::open(std::unique_ptr<Source> source, const cachefmt::Trust& trust)
{
    auto header = read_file_header(*source);
    if (!header) return std::unexpected(std::move(header.error()));
    auto signed_by = check_signature(*header, trust);
    if (!signed_by) return std::unexpected(std::move(signed_by.error()));
    auto raw = read_index(*source, *header);
    if (!raw) return std::unexpected(std::move(raw.error()));
    auto impl = std::make_unique<Impl>();
    impl->source = std::move(source);
    impl->trust = trust;
    impl->header = std::move(*header);
    impl->index_bytes = std::move(*raw);
    impl->signed_by = std::move(*signed_by);
    auto index = parse_index(impl->index_bytes, impl->header.index_offset);
    if (!index) return std::unexpected(std::move(index.error()));
    impl->index = std::move(*index);
    impl->by_name.resize(impl->index.members.size());
    std::iota(impl->by_name.begin(), impl->by_name.end(), 0U);
    std::ranges::sort(impl->by_name, {}, [&](std::uint32_t i) { return impl->index.members[i].name; });
    return std::unique_ptr<Bundle>(new Bundle(std::move(impl)));
}

Result<std::unique_ptr<Bundle>> Bundle::open_trusted(const std::filesystem::path& path, const cachefmt::Trust& trust,
                                                     const std::vector<std::uint32_t>& owners, Streams streams)
{
    auto file = open_judged(path, owners, streams);
    if (!file) return std::unexpected(std::move(file.error()));
    const bool takes_signatures = trust.sign_with != nullptr || !trust.accepted.empty();
    if (!file->trusted && !takes_signatures) return std::unexpected(std::move(file->trusted.error()));
    cachefmt::Trust actual = trust;
    actual.require = trust.require || !file->trusted;
    auto bundle = open(std::move(file->source), actual);
    if (!bundle) return within(path.string(), std::move(bundle.error()));
    return bundle;
}

bool Bundle::requires_signature() const noexcept { return m_impl->trust.require; }
const std::vector<Member>& Bundle::members() const noexcept { return m_impl->index.members; }
const std::string& Bundle::created() const noexcept { return m_impl->index.created; }
const std::string& Bundle::created_by() const noexcept { return m_impl->index.created_by; }
std::uint64_t Bundle::size() const noexcept { return m_impl->header.file_size(); }
const std::string& Bundle::key_id() const noexcept { return m_impl->header.key_id; }
const std::string& Bundle::signed_by() const noexcept { return m_impl->signed_by; }

const Member* Bundle::find(std::string_view name) const noexcept
{
    const auto& members = m_impl->index.members;
    const auto at =
        std::ranges::lower_bound(m_impl->by_name, name, {}, [&](std::uint32_t i) { return members[i].name; });
    return at != m_impl->by_name.end() && members[*at].name == name ? &members[*at] : nullptr;
}

Result<cachefmt::EntryHeader> Bundle::header(const Member& graph) const
{
    const auto name = tier_name(ArtifactKind::entries, graph.name);
    const auto* const key = name ? std::get_if<store::EntryKey>(&*name) : nullptr;
    if (key == nullptr) return fail(ErrorCode::invalid_argument, "member '{}' is not a graph", graph.name);
    return cachefmt::decode_header(graph.head, *key, {}, m_impl->trust);
}

Result<Bytes> Bundle::stored(const Member& member) const
{
    auto bytes = read_bytes(*m_impl->source, member.offset, member.stored);
    if (!bytes) return within(member.name, bytes.error());
    if (sha256(*bytes) != member.digest)
        return fail(ErrorCode::corrupt, "{}: its digest does not match: the bundle is damaged", member.name);
    return bytes;
}

Result<Bytes> Bundle::content(const Member& member) const
{
    auto bytes = stored(member);
    if (!bytes) return bytes;
    auto body = expand(std::move(*bytes), member.codec, member.size);
    if (!body) return within(member.name, body.error());
    if (member.head.empty()) return body;
    Bytes object;
    object.reserve(member.object_size());
    append(object, member.head);
    append(object, ByteView{*body});
    return object;
}

Result<void> Bundle::check_trust(const Member& member) const
{
    const KindReader* const reader = find_reader(member.kind);
    if (reader == nullptr)
        return fail(ErrorCode::unsupported, "this warmgraph cannot verify a {}: use a newer one", name_of(member.kind));
    if (store::row_of(member.kind).part_of == ArtifactKind::entries) return {};
    if (reader->check_trust != nullptr) return reader->check_trust(member.head, m_impl->trust);
    if (m_impl->trust.require && m_impl->signed_by.empty())
        return fail(ErrorCode::untrusted, "a signature is required, and the bundle has none that is accepted");
    return {};
}

Result<void> Bundle::verify(const Member& member) const
{
    if (auto ok = check_trust(member); !ok) return ok;
    const auto bytes = content(member);
    if (!bytes) return std::unexpected(bytes.error());
    if (auto ok = reader_of(member.kind).verify(*tier_name(member.kind, member.name), *bytes); !ok)
        return within(member.name, std::move(ok.error()));
    return {};
}

} // namespace warmgraph::bundle
