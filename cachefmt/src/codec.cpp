#include "warmgraph/cachefmt/codec.hpp"

#include "envelope.hpp"
#include "flat_footprint.hpp"
#include "flat_reader.hpp"
#include "flat_writer.hpp"
#include "footprint.hpp"
#include "signature.hpp"
#include "validate_header.hpp"
#include "warmgraph/cachefmt/compression.hpp"

namespace warmgraph::cachefmt {
namespace {

std::string to_text(const EntryKey& key)
{
    return fmt::format("{}/{}/{} {}", key.function.model_info, key.function.rank, key.function.function,
                       short_hex(key.guards_digest));
}

/// Checks that header and graph agree.
Result<void> check_agreement(const Entry& entry)
{
    const EntryInfo& info = entry.header.info;
    if (entry.header.kind == EntryKind::tombstone) {
        if (!(entry.graph == Graph{})) return fail(ErrorCode::corrupt, "a tombstone has no graph, this one has");
        return {};
    }
    if (info.node_count != entry.graph.nodes.size())
        return fail(ErrorCode::corrupt, "header says {} nodes, the graph has {}", info.node_count,
                    entry.graph.nodes.size());
    if (info.image_count != entry.graph.images.size())
        return fail(ErrorCode::corrupt, "header says {} images, the graph has {}", info.image_count,
                    entry.graph.images.size());
    return {};
}

Result<void> check_encodable(const Entry& entry, const Limits& limits)
{
    if (auto ok = validate_header(entry.header, limits); !ok) return ok;
    if (auto ok = check_agreement(entry); !ok) return ok;
    if (const Digest digest = guards_digest(entry.header.guards); digest != entry.header.key.guards_digest)
        return fail(ErrorCode::internal, "key has guards digest {}, the guards have {}",
                    short_hex(entry.header.key.guards_digest), short_hex(digest));
    return validate(entry.graph, limits);
}

struct StoredPayload {
    Bytes bytes;
    std::uint64_t raw_size = 0;
    Compression compression = Compression::none;
};

Result<StoredPayload> store_payload(const Graph& graph, const EncodeOptions& options, const Limits& limits)
{
    StoredPayload payload{write_payload(graph), 0, Compression::none};
    payload.raw_size = payload.bytes.size();
    if (payload.raw_size > limits.payload_bytes)
        return fail(ErrorCode::internal, "payload of {} bytes is over the limit of {}", payload.raw_size,
                    limits.payload_bytes);
    if (const auto budget = memory_budget(payload.raw_size, limits.payload_bytes); footprint(graph) > budget)
        return fail(ErrorCode::internal, "graph takes {} bytes of memory, over the limit of {} for {} bytes",
                    footprint(graph), budget, payload.raw_size);
    if (payload.raw_size <= options.compress_above) return payload;
    auto compressed = compress(payload.bytes, options.zstd_level, least_stored(payload.raw_size));
    if (!compressed) return std::unexpected(std::move(compressed.error()));
    if (compressed->size() < payload.raw_size) {
        payload.bytes = std::move(*compressed);
        payload.compression = Compression::zstd;
    }
    return payload;
}

struct HeaderAndEnvelope {
    Envelope envelope;
    EntryHeader header;
};

/// Parses the envelope and checks its digests, before any flatbuffer is read.
Result<Envelope> open_envelope(ByteView prefix, const EntryKey& expected, const Limits& limits)
{
    auto envelope = parse_envelope(prefix, limits);
    if (!envelope) return envelope;
    if (prefix.size() < envelope->header_end())
        return fail(ErrorCode::corrupt, "entry has {} bytes, its header ends at {}", prefix.size(),
                    envelope->header_end());
    const auto header = prefix.subspan(k_envelope_bytes, envelope->header_size);
    if (seal(*envelope, header) != envelope->header_digest)
        return fail(ErrorCode::corrupt, "header digest does not match: the entry is damaged");
    if (key_digest(expected) != envelope->key_digest)
        return fail(ErrorCode::stale, "entry was stored under another key than {}", to_text(expected));
    return envelope;
}

Result<HeaderAndEnvelope> open_header(ByteView prefix, const EntryKey& expected, const Limits& limits,
                                      const Trust& trust)
{
    auto envelope = open_envelope(prefix, expected, limits);
    if (!envelope) return std::unexpected(std::move(envelope.error()));
    auto signed_by = check_signature(*envelope, trust);
    if (!signed_by) return std::unexpected(std::move(signed_by.error()));
    auto header = read_header(prefix.subspan(k_envelope_bytes, envelope->header_size), limits);
    if (!header) return std::unexpected(std::move(header.error()));
    if (header->key != expected)
        return fail(ErrorCode::corrupt, "header holds another key than the envelope, which is for {}",
                    to_text(expected));
    if (header->kind != envelope->kind)
        return fail(ErrorCode::corrupt, "header has kind {}, the envelope {}", static_cast<int>(header->kind),
                    static_cast<int>(envelope->kind));
    if (auto ok = validate_header(*header, limits); !ok) return std::unexpected(std::move(ok.error()));
    if (const Digest digest = guards_digest(header->guards); digest != expected.guards_digest)
        return fail(ErrorCode::corrupt, "guards have digest {}, the key says {}", short_hex(digest),
                    short_hex(expected.guards_digest));
    header->signed_by = std::move(*signed_by);
    return HeaderAndEnvelope{std::move(*envelope), std::move(*header)};
}

Result<Graph> open_payload(ByteView stored, const Envelope& envelope, const Limits& limits)
{
    if (sha256(stored) != envelope.payload_digest)
        return fail(ErrorCode::corrupt, "payload digest does not match: the entry is damaged");
    if (envelope.kind == EntryKind::tombstone) return Graph{};
    if (envelope.compression == Compression::none) return read_payload(stored, limits);
    auto raw = decompress(stored, envelope.payload_raw);
    if (!raw) return std::unexpected(std::move(raw.error()));
    return read_payload(raw->view(), limits);
}

} // namespace

Result<Bytes> encode(const Entry& entry, const EncodeOptions& options)
{
    const Limits limits;
    if (auto ok = check_encodable(entry, limits); !ok)
        return fail(ErrorCode::internal, "cannot encode {}: {}", to_text(entry.header.key), ok.error().message);
    const Bytes header = write_header(entry.header);
    if (header.size() > limits.header_bytes)
        return fail(ErrorCode::internal, "cannot encode {}: header of {} bytes is over the limit of {}",
                    to_text(entry.header.key), header.size(), limits.header_bytes);
    StoredPayload payload;
    if (entry.header.kind == EntryKind::graph) {
        auto stored = store_payload(entry.graph, options, limits);
        if (!stored)
            return within(fmt::format("cannot encode {}", to_text(entry.header.key)), std::move(stored.error()));
        payload = std::move(*stored);
    }
    Envelope envelope;
    envelope.kind = entry.header.kind;
    envelope.header_size = header.size();
    envelope.payload_stored = payload.bytes.size();
    envelope.payload_raw = payload.raw_size;
    envelope.compression = payload.compression;
    envelope.payload_digest = sha256(payload.bytes);
    envelope.key_digest = key_digest(entry.header.key);
    envelope.header_digest = seal(envelope, header);
    if (options.sign_with != nullptr)
        if (auto ok = sign(envelope, *options.sign_with); !ok)
            return within(fmt::format("cannot sign {}", to_text(entry.header.key)), std::move(ok.error()));

    Bytes bytes;
    bytes.reserve(envelope.file_size());
    append(bytes, ByteView{to_bytes(envelope)});
    append(bytes, ByteView{header});
    append(bytes, ByteView{payload.bytes});
    return bytes;
}

Result<std::uint64_t> header_extent(ByteView prefix, const Limits& limits)
{
    auto envelope = parse_envelope(prefix, limits);
    if (!envelope) return std::unexpected(std::move(envelope.error()));
    return envelope->header_end();
}

Result<EntryHeader> decode_header(ByteView prefix, const EntryKey& expected, const Limits& limits, const Trust& trust)
{
    auto opened = open_header(prefix, expected, limits, trust);
    if (!opened) return std::unexpected(std::move(opened.error()));
    return std::move(opened->header);
}

Result<Entry> decode(ByteView bytes, const EntryKey& expected, const Limits& limits, const Trust& trust)
{
    auto envelope = parse_envelope(bytes, limits);
    if (!envelope) return std::unexpected(std::move(envelope.error()));
    if (bytes.size() != envelope->file_size())
        return fail(ErrorCode::corrupt, "entry has {} bytes, its envelope says {}", bytes.size(),
                    envelope->file_size());
    auto opened = open_header(bytes, expected, limits, trust);
    if (!opened) return std::unexpected(std::move(opened.error()));
    auto graph = open_payload(bytes.subspan(envelope->header_end()), *envelope, limits);
    if (!graph) return std::unexpected(std::move(graph.error()));
    Entry entry{std::move(opened->header), std::move(*graph)};
    if (auto ok = validate(entry.graph, limits); !ok) return std::unexpected(std::move(ok.error()));
    if (auto ok = check_agreement(entry); !ok) return std::unexpected(std::move(ok.error()));
    return entry;
}

} // namespace warmgraph::cachefmt
