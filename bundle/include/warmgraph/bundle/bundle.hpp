// An open bundle: its index is in memory, its members are read one by one. The format: docs/format.md, "The bundle".
//
// Opening a bundle reads only header and index. Every size is checked against its cap and the file's size before memory
// is allocated. Every digest is checked before the covered bytes are used. Thread-safe once opened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/bundle/kinds.hpp"
#include "warmgraph/bundle/source.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::bundle {

inline constexpr std::uint32_t k_bundle_version = 1;
inline constexpr std::string_view k_suffix = ".wgb";

/// How a member's bytes are stored in the file. Bundles store these values.
enum class Codec : std::uint32_t { none = 0, zstd = 1 };

struct Member {
    ArtifactKind kind = ArtifactKind::entries;
    Codec codec = Codec::none;
    std::uint64_t offset = 0; ///< position of the stored bytes in the file
    std::uint64_t stored = 0; ///< number of stored bytes
    std::uint64_t size = 0;   ///< number of bytes after decompression
    Digest digest;            ///< digest of the stored bytes
    std::string_view name{};  ///< the member's name in a tier: "images/<64 hex digits>"
    /// The object's first bytes, which the index holds and the member does not repeat: an entry's envelope and header,
    /// or a compiled program's bytes before its image. So guards, facts and signature can be read from the index alone.
    ByteView head{};

    [[nodiscard]] std::uint64_t object_size() const noexcept { return head.size() + size; }
};

class Bundle {
public:
    /// Opens a bundle. `corrupt`: the bundle is damaged or hostile; `stale`: it has another format; `untrusted`: its
    /// signature names an accepted key but is false.
    [[nodiscard]] static Result<std::unique_ptr<Bundle>> open(std::unique_ptr<Source> source,
                                                              const cachefmt::Trust& trust = {});
    /// Opens a file whose contents will be used. If another user may have written it, every member needs an accepted
    /// signature; permission_denied: this is necessary, and no key is accepted.
    [[nodiscard]] static Result<std::unique_ptr<Bundle>> open_trusted(const std::filesystem::path& path,
                                                                      const cachefmt::Trust& trust,
                                                                      const std::vector<std::uint32_t>& owners,
                                                                      Streams streams = Streams::refused);
    Bundle(const Bundle&) = delete;
    Bundle& operator=(const Bundle&) = delete;
    ~Bundle();

    [[nodiscard]] const std::vector<Member>& members() const noexcept; ///< the members in the file's order
    /// Returns the member with this name; null if the bundle has no such member.
    [[nodiscard]] const Member* find(std::string_view name) const noexcept;
    [[nodiscard]] const std::string& created() const noexcept;    ///< ISO 8601
    [[nodiscard]] const std::string& created_by() const noexcept; ///< program and version: "warmgraph 0.1.0"
    [[nodiscard]] std::uint64_t size() const noexcept;            ///< size of the file in bytes
    /// Returns the id of the key with which the bundle claims to be signed; empty: unsigned.
    [[nodiscard]] const std::string& key_id() const noexcept;
    /// Returns the id of the accepted key that signed the bundle; empty: no accepted signature.
    [[nodiscard]] const std::string& signed_by() const noexcept;

    [[nodiscard]] bool requires_signature() const noexcept; ///< whether the trust of open() requires a signature

    /// Returns a graph's guards and facts, verified with the entry's own signature. Reads only the index.
    [[nodiscard]] Result<cachefmt::EntryHeader> header(const Member& graph) const;
    /// Returns the object in the form that a cache folder has. Checks only the digest; verify() also checks the
    /// meaning.
    [[nodiscard]] Result<Bytes> content(const Member& member) const;
    /// Returns the bytes as stored, for copying them into another bundle.
    [[nodiscard]] Result<Bytes> stored(const Member& member) const;
    /// Checks only the index. `unsupported`: this version cannot verify such a member; `untrusted`: a signature is
    /// required, and neither member nor bundle has an accepted one. Does not check graphs, which header() checks, and
    /// images, whose names are their digests.
    [[nodiscard]] Result<void> check_trust(const Member& member) const;
    /// Runs check_trust(), then reads the member and checks the object in the way that its kind requires.
    [[nodiscard]] Result<void> verify(const Member& member) const;

private:
    struct Impl;
    explicit Bundle(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph::bundle
