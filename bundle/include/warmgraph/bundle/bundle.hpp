// A bundle, opened: its index is in memory, its members are read one by one. docs/format.md, "The bundle".
//
// Opening reads header and index and nothing else. Every size is held to its cap, and to the file's, before anything is
// allocated; every digest is checked before what it covers is looked at. Thread-safe once opened.
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

/// Stored: how a member's bytes lie in the file.
enum class Codec : std::uint32_t { none = 0, zstd = 1 };

struct Member {
    ArtifactKind kind = ArtifactKind::entries;
    Codec codec = Codec::none;
    std::uint64_t offset = 0; ///< in the file
    std::uint64_t stored = 0; ///< bytes there
    std::uint64_t size = 0;   ///< once decompressed
    Digest digest;            ///< of the stored bytes
    std::string_view name{};  ///< as the tier names it: "images/<64 hex digits>"
    /// Of a graph: its entry's envelope and header; of a compiled program: all before its image. They are not stored again.
    /// So guards, facts and signature are known from the index.
    ByteView head{};

    [[nodiscard]] std::uint64_t object_size() const noexcept { return head.size() + size; }
};

class Bundle {
public:
    /// `corrupt`: damaged or hostile; `stale`: of another format; `untrusted`: a signature under an accepted id that is
    /// not that key's.
    [[nodiscard]] static Result<std::unique_ptr<Bundle>> open(std::unique_ptr<Source> source,
                                                              const cachefmt::Trust& trust = {});
    /// A file whose contents are to be used. Where somebody else may have written it, only what an accepted key signed is;
    /// permission_denied where no key is accepted.
    [[nodiscard]] static Result<std::unique_ptr<Bundle>> open_trusted(const std::filesystem::path& path,
                                                                      const cachefmt::Trust& trust,
                                                                      const std::vector<std::uint32_t>& owners,
                                                                      Streams streams = Streams::refused);
    Bundle(const Bundle&) = delete;
    Bundle& operator=(const Bundle&) = delete;
    ~Bundle();

    [[nodiscard]] const std::vector<Member>& members() const noexcept; ///< in the order of the file
    /// Null: there is none.
    [[nodiscard]] const Member* find(std::string_view name) const noexcept;
    [[nodiscard]] const std::string& created() const noexcept;    ///< ISO 8601
    [[nodiscard]] const std::string& created_by() const noexcept; ///< "warmgraph 0.1.0"
    [[nodiscard]] std::uint64_t size() const noexcept;            ///< of the file
    [[nodiscard]] const std::string& key_id() const noexcept;     ///< that it claims to be signed with; empty: unsigned
    [[nodiscard]] const std::string& signed_by() const noexcept;  ///< the accepted key that did; empty: none

    [[nodiscard]] bool requires_signature() const noexcept; ///< as the trust that it was opened with

    /// Of a graph: guards and facts, verified with the entry's own signature; no member is read.
    [[nodiscard]] Result<cachefmt::EntryHeader> header(const Member& graph) const;
    /// The object as it lies in a cache folder. Its digest is verified here; verify() also asks what it means.
    [[nodiscard]] Result<Bytes> content(const Member& member) const;
    /// The stored bytes as they are, for another bundle.
    [[nodiscard]] Result<Bytes> stored(const Member& member) const;
    /// What is known of the index alone. `unsupported`: this version cannot verify such a member; `untrusted`: a signature is
    /// required, and neither it nor the bundle has one that is accepted. Of a graph header() says so, of what a graph needs
    /// its name.
    [[nodiscard]] Result<void> check_trust(const Member& member) const;
    /// check_trust(), and reads the member and holds it to its kind.
    [[nodiscard]] Result<void> verify(const Member& member) const;

private:
    struct Impl;
    explicit Bundle(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph::bundle
