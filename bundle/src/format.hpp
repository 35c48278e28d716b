// The bytes of a bundle around its members: header and index. docs/format.md, "The bundle", describes layout and
// digests.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/bundle/bundle.hpp"

namespace warmgraph::bundle {

inline constexpr std::size_t k_header_bytes = 288;
inline constexpr std::uint64_t k_most_index = 256ULL << 20; ///< limit in bytes before compression; one head has 2-8 KiB
inline constexpr std::uint64_t k_most_members = 1ULL << 20;
/// Limit of uncompressed bytes for each stored byte, as in an entry.
inline constexpr std::uint64_t k_most_expansion = 64;

struct FileHeader {
    std::uint64_t index_offset = 0; ///< start of the index, which is the end of the members
    std::uint64_t index_stored = 0, index_raw = 0;
    Digest index_digest; ///< digest of the stored bytes
    Codec index_codec = Codec::none;
    Digest digest; ///< digest of the header's bytes before this one
    SignatureKind signature_kind = SignatureKind::none;
    std::string key_id{};
    SignatureBytes signature{};

    [[nodiscard]] std::uint64_t file_size() const noexcept { return index_offset + index_stored; }
};

using FileHeaderBytes = std::array<std::byte, k_header_bytes>;

/// Returns the header's bytes. Fills in the digests, and signs if there is a key.
[[nodiscard]] Result<FileHeaderBytes> to_bytes(FileHeader header, const SigningKey* sign_with);
/// Reads the header. Checks magic, digests, version and the signature's form. Checks the sizes against their caps and,
/// if it is known, the file's size.
[[nodiscard]] Result<FileHeader> parse_header(ByteView bytes, std::optional<std::uint64_t> file_size);
/// Returns the id of the accepted key that signed the header; empty if none did. `untrusted`: the signature names an
/// accepted key, but this key did not make it.
[[nodiscard]] Result<std::string> check_signature(const FileHeader& header, const cachefmt::Trust& trust);

struct Index {
    std::string created{}, created_by{};
    std::vector<Member> members{}; ///< in the file's order; names and heads point into the index's bytes
};
/// Reads the index. Checks that names are valid and unique, and that the members fill the file between header and
/// index.
[[nodiscard]] Result<Index> parse_index(ByteView raw, std::uint64_t members_end);

void append_member(Bytes& index, const Member& member);
void append_index_start(Bytes& index, std::string_view created, std::string_view created_by, std::uint64_t members);

} // namespace warmgraph::bundle
