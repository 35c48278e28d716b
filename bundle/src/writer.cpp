#include "warmgraph/bundle/writer.hpp"

#include <algorithm>

#include "format.hpp"
#include "warmgraph/cachefmt/compression.hpp"

namespace warmgraph::bundle {
namespace {

class MemorySink final : public Sink {
public:
    explicit MemorySink(Bytes& bytes) : m_bytes(bytes) { m_bytes.clear(); }
    [[nodiscard]] Result<void> append(ByteView bytes) override
    {
        warmgraph::append(m_bytes, bytes);
        return {};
    }
    [[nodiscard]] Result<void> finish(ByteView first) override
    {
        std::ranges::copy(first, m_bytes.begin());
        return {};
    }

private:
    Bytes& m_bytes;
};

struct PackedBytes {
    Bytes bytes{}; ///< the compressed bytes; empty if the bytes are stored uncompressed
    Codec codec = Codec::none;
};

/// Compresses the bytes if that makes them smaller. Pads a result that is smaller than 1 / 64 of the raw size, because
/// readers refuse such a result.
Result<PackedBytes> pack(ByteView raw, const WriteOptions& options)
{
    if (raw.size() <= options.compress_above) return PackedBytes{};
    auto small = cachefmt::compress(raw, options.zstd_level, raw.size() / k_most_expansion + 1);
    if (!small) return std::unexpected(std::move(small.error()));
    if (small->size() >= raw.size()) return PackedBytes{};
    return PackedBytes{std::move(*small), Codec::zstd};
}

} // namespace

std::unique_ptr<Sink> into_bytes(Bytes& bytes) { return std::make_unique<MemorySink>(bytes); }

Writer::Writer(std::unique_ptr<Sink> sink, const WriteOptions& options, Clock& clock)
    : m_sink(std::move(sink)), m_options(options), m_clock(clock), m_end(0)
{
}

Result<void> Writer::put(Record record, ByteView stored)
{
    if (needs_signed_bundle(record.member.kind) && m_options.sign_with == nullptr)
        return fail(ErrorCode::invalid_argument,
                    "{} can run code where it is used, and can only be put into a signed bundle: give a key to sign "
                    "with (--key-file, sign_with_file or WARMGRAPH_SIGN_KEY_FILE)",
                    record.name);
    if (m_end == 0) { // leaves room for the header, which is known last
        if (auto ok = m_sink->append(FileHeaderBytes{}); !ok) return ok;
        m_end = k_header_bytes;
    }
    if (auto ok = m_sink->append(stored); !ok) return ok;
    record.member.offset = m_end;
    record.member.stored = stored.size();
    record.member.digest = sha256(stored);
    m_end += stored.size();
    m_names.insert(record.name);
    m_records.push_back(std::move(record));
    return {};
}

Result<bool> Writer::add(ArtifactKind kind, const store::Name& name, ByteView object)
{
    std::string text = to_text(name);
    const KindReader* const reader = find_reader(kind);
    if (reader == nullptr)
        return fail(ErrorCode::unsupported, "{}: this version of warmgraph cannot verify a {}, so it is left out", text,
                    name_of(kind));
    if (m_names.contains(text)) return false;
    if (auto ok = reader->verify(name, object); !ok) return within(text, std::move(ok.error()));
    Record record{{}, std::move(text), {}};
    record.member.kind = kind;
    ByteView body = object;
    if (reader->head_extent != nullptr) {
        const auto extent = reader->head_extent(object);
        if (!extent) return within(record.name, extent.error());
        record.head.assign(object.begin(), object.begin() + static_cast<std::ptrdiff_t>(*extent));
        body = object.subspan(*extent);
    }
    record.member.size = body.size();
    // A graph is not compressed again: its payload is already compressed if that makes it smaller.
    const auto packed = kind == ArtifactKind::entries ? Result<PackedBytes>{} : pack(body, m_options);
    if (!packed) return within(record.name, packed.error());
    record.member.codec = packed->codec;
    if (auto ok = put(std::move(record), packed->codec == Codec::none ? body : ByteView{packed->bytes}); !ok)
        return std::unexpected(std::move(ok.error()));
    return true;
}

Result<bool> Writer::copy(const Bundle& from, const Member& member)
{
    if (m_names.contains(member.name)) return false;
    const auto stored = from.stored(member);
    if (!stored) return std::unexpected(stored.error());
    Record record{member, std::string(member.name), Bytes(member.head.begin(), member.head.end())};
    if (auto ok = put(std::move(record), *stored); !ok) return std::unexpected(std::move(ok.error()));
    return true;
}

Result<void> Writer::finish()
{
    if (m_records.empty())
        return fail(ErrorCode::not_found, "nothing fits the selection, so the bundle would be empty");
    Bytes index;
    append_index_start(index, to_iso8601(m_clock.wall()), "warmgraph " WARMGRAPH_VERSION, m_records.size());
    for (Record& record : m_records) {
        record.member.name = record.name;
        record.member.head = record.head;
        append_member(index, record.member);
    }
    if (index.size() > k_most_index)
        return fail(ErrorCode::unsupported,
                    "the index of {} members has {} bytes, expected at most {}: make several bundles", m_records.size(),
                    index.size(), k_most_index);
    const auto packed = pack(index, m_options);
    if (!packed) return std::unexpected(packed.error());
    const ByteView stored = packed->codec == Codec::none ? ByteView{index} : ByteView{packed->bytes};
    FileHeader header;
    header.index_offset = m_end;
    header.index_stored = stored.size();
    header.index_raw = index.size();
    header.index_codec = packed->codec;
    header.index_digest = sha256(stored);
    const auto first = to_bytes(std::move(header), m_options.sign_with);
    if (!first) return std::unexpected(first.error());
    if (auto ok = m_sink->append(stored); !ok) return ok;
    return m_sink->finish(*first);
}

} // namespace warmgraph::bundle
