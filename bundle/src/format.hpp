// The bytes of a bundle around its members: header and index. Layout and digests: docs/format.md, "The bundle".
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/bundle/bundle.hpp"

namespace warmgraph::bundle {

inline constexpr std::size_t k_header_bytes = 288;
inline constexpr std::uint64_t k_most_index = 256ULL << 20; ///< raw bytes; one head has 2-8 KiB
inline constexpr std::uint64_t k_most_members = 1ULL << 20;
inline constexpr std::uint64_t k_most_expansion = 64; ///< raw bytes for each stored byte, as in an entry

struct FileHeader {
    std::uint64_t index_offset = 0; ///< end of the members
    std::uint64_t index_stored = 0, index_raw = 0;
    Digest index_digest; ///< of the stored bytes
    Codec index_codec = Codec::none;
    Digest digest; ///< of the header's bytes before it
    SignatureKind signature_kind = SignatureKind::none;
    std::string key_id{};
    SignatureBytes signature{};

    [[nodiscard]] std::uint64_t file_size() const noexcept { return index_offset + index_stored; }
};

using FileHeaderBytes = std::array<std::byte, k_header_bytes>;

/// Fills in the digests. Signs if there is a key.
[[nodiscard]] Result<FileHeaderBytes> to_bytes(FileHeader header, const SigningKey* sign_with);
/// Checks magic, digests, version, the signature's form, and sizes against their caps and the file's size, if known.
[[nodiscard]] Result<FileHeader> parse_header(ByteView bytes, std::optional<std::uint64_t> file_size);
/// Returns the id of the accepted key that signed the header; empty if none did. `untrusted`: the signature names an
/// accepted key, but is not from this key.
[[nodiscard]] Result<std::string> check_signature(const FileHeader& header, const cachefmt::Trust& trust);

struct Index {
    std::string created{}, created_by{};
    std::vector<Member> members{}; ///< in the file's order; their names and heads point into the index's bytes
};
/// Checks that names are valid and unique, and that the members fill the file between header and index.
[[nodiscard]] Result<Index> parse_index(ByteView raw, std::uint64_t members_end);

void append_member(Bytes& index, const Member& member);
void append_index_start(Bytes& index, std::string_view created, std::string_view created_by, std::uint64_t members);

} // namespace warmgraph::bundle
