// Makes bundles with any members and with matching digests, as a hostile writer could make them. The code was written
// from docs/format.md, without using the library's code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::test {

struct RawMember {
    std::uint32_t kind = 2, codec = 0;
    std::string name{};
    Bytes stored{}, head{};
    std::uint64_t size = 0;        ///< the size that the index claims
    std::uint64_t stored_size = 0; ///< the stored size that the index claims
};

inline RawMember raw_member(std::uint32_t kind, std::string name, ByteView stored, ByteView head = {})
{
    return {kind,         0, std::move(name), {stored.begin(), stored.end()}, {head.begin(), head.end()}, stored.size(),
            stored.size()};
}

namespace bundle_at {
inline constexpr std::size_t version = 8, flags = 12, index_offset = 16, index_stored = 24, index_raw = 32,
                             index_codec = 40, index_digest = 48, digest = 80, signature_seal = 256, end = 288;
} // namespace bundle_at

/// Makes the digests match: those in the header for the bytes before them, and the digest of the index for its bytes.
inline void reseal_bundle(Bytes& bytes)
{
    const auto put = [&](std::size_t at, const Digest& digest) {
        std::memcpy(bytes.data() + at, digest.bytes.data(), digest.bytes.size());
    };
    const ByteView all{bytes};
    const auto offset = load<std::uint64_t>(all, bundle_at::index_offset);
    if (offset <= bytes.size()) put(bundle_at::index_digest, sha256(all.subspan(offset)));
    Sha256 header;
    header.update_field(std::string_view{"warmgraph bundle 1"}).update(all.first(bundle_at::digest));
    put(bundle_at::digest, header.finish());
    Sha256 signature;
    signature.update_field(std::string_view{"warmgraph bundle signature block 1"});
    signature.update(all.subspan(bundle_at::digest, bundle_at::signature_seal - bundle_at::digest));
    put(bundle_at::signature_seal, signature.finish());
}

inline Bytes assemble_bundle(const std::vector<RawMember>& members, std::uint64_t said_members = ~0ULL)
{
    Bytes bytes(bundle_at::end), index;
    const auto text = [&](std::string_view value) {
        append(index, static_cast<std::uint32_t>(value.size()));
        append(index, as_bytes(value));
    };
    text("2026-11-24T00:00:00Z");
    text("nobody");
    append(index, said_members == ~0ULL ? std::uint64_t{members.size()} : said_members);
    for (const RawMember& member : members) {
        append(index, member.kind);
        append(index, member.codec);
        append(index, member.stored_size);
        append(index, member.size);
        append(index, ByteView{sha256(member.stored).bytes});
        text(member.name);
        append(index, static_cast<std::uint32_t>(member.head.size()));
        append(index, ByteView{member.head});
        append(bytes, ByteView{member.stored});
    }
    const auto poke = [&]<class T>(std::size_t at, T value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
    std::memcpy(bytes.data(), "\x89WGBND\r\n", 8);
    poke(bundle_at::version, std::uint32_t{1});
    poke(bundle_at::index_offset, std::uint64_t{bytes.size()});
    poke(bundle_at::index_stored, std::uint64_t{index.size()});
    poke(bundle_at::index_raw, std::uint64_t{index.size()});
    append(bytes, ByteView{index});
    reseal_bundle(bytes);
    return bytes;
}

} // namespace warmgraph::test
