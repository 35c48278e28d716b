// Entries and images over a tier of bytes: encoded, decoded, and verified at every read.
//
// Thread-safe where the tier is. A failure is an Error for the caller to count, never an exception.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/store/packing.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

using cachefmt::Entry;
using cachefmt::EntryHeader;

/// Why an entry is read: it is used now, or ahead of its use, which note_use() then tells.
enum class Reading : std::uint8_t { use, ahead };

/// A header that was read and verified. Shared, as it is large: a model of hundreds of weights has hundreds of facts.
using Header = std::shared_ptr<const EntryHeader>;

/// A header, or why there is none: as Result<EntryHeader>, whose copies share it.
class VariantHeader {
public:
    VariantHeader() : VariantHeader(EntryHeader{}) {}
    VariantHeader(EntryHeader header) : m_header(std::make_shared<const EntryHeader>(std::move(header))) {}
    VariantHeader(std::unexpected<Error> error) : m_header(std::move(error)) {}
    VariantHeader(Result<Header> header) : m_header(std::move(header)) {} ///< REQUIRES: not null

    explicit operator bool() const noexcept { return m_header.has_value(); }
    const EntryHeader& operator*() const noexcept { return **m_header; }
    const EntryHeader* operator->() const noexcept { return m_header->get(); }
    [[nodiscard]] const Error& error() const noexcept { return m_header.error(); }

private:
    Result<Header> m_header;
};

/// A variant as found.
struct Variant {
    Digest guards_digest;                            ///< from its name
    std::uint64_t size = 0;                          ///< bytes stored
    std::chrono::system_clock::time_point last_used; ///< or when it was put
    VariantHeader header;                            ///< the payload was not read
};

/// What is read or written: the largest of each, and whose entries.
struct Caps {
    cachefmt::Limits entry{};
    std::uint64_t image_bytes =
        256ULL << 20; ///< below entry.image_bytes: an image's digest is known only when it is read
    cachefmt::Trust
        trust{};         ///< entries that it does not accept are `untrusted`; what is published is signed with its key
    Packings packings{}; ///< of what is published
};

class HeaderMemo; // src/header_memo.hpp

class Store {
public:
    /// Told of each entry that entry() does not give: what was read, and why. Called in entry()'s thread.
    using Refused = std::function<void(const EntryKey&, const Stamp&, const Error&)>;

    /// `tier` must outlive the store.
    explicit Store(Tier& tier, const Caps& caps = {}, Refused refused = {});

    // Every key is checked (check_key, invalid_argument) before a tier sees it.

    // A header that was read is not read again while the tier has its object with the same stamp.

    /// All variants of a function, headers verified, sorted by digest. Damaged ones carry their error.
    [[nodiscard]] Result<std::vector<Variant>> variants(const FunctionKey& function) const;
    /// One header by exact key; null when there is no such entry. The key has the format in its guards: an object of
    /// another format, newer or not, is damage here.
    [[nodiscard]] Result<Header> header(const EntryKey& key) const;
    /// One entry, fully verified and (Reading::use) counted as used now. nullopt: there is none. Corrupt and stale ones
    /// are refused to the tier, whatever format they claim, and the error is returned; untrusted ones stay, and are not
    /// read beyond their header. `stamp`: set where an entry is given, for is_still().
    [[nodiscard]] Result<std::optional<Entry>> entry(const EntryKey& key, Reading reading = Reading::use,
                                                     Stamp* stamp = nullptr);
    /// Whether what the tier has under the key is what entry() read: then it need not be read again. False in doubt.
    [[nodiscard]] bool is_still(const EntryKey& key, const Stamp& stamp) noexcept;
    /// Counts an entry as used now. Best effort.
    void note_use(const EntryKey& key) noexcept;
    /// Encodes, signs and puts. Replaces an entry of the same key.
    [[nodiscard]] Result<void> publish(const Entry& entry);
    [[nodiscard]] Result<void> remove(const EntryKey& key);
    /// An entry that is whole and still could not be used, for `reason`: refused to the tier, unless it was replaced since
    /// this header was read. Best effort.
    void set_aside(const EntryHeader& header, const Error& reason) noexcept;

    /// Verified against the digest; nullopt when missing; damaged ones are refused to the tier and reported as missing.
    /// `size` is what the entry says: no more is read.
    [[nodiscard]] Result<std::optional<Bytes>> image(const Digest& digest, std::uint64_t size = ~0ULL);
    /// Puts unless it is there already (then it is used now). Returns true when put. unsupported: over the cap. REQUIRES:
    /// is_blob(kind).
    [[nodiscard]] Result<bool> publish_image(ByteView blob, ArtifactKind kind = ArtifactKind::images);

private:
    Tier& m_tier;
    Caps m_caps;
    Refused m_refused;
    std::shared_ptr<HeaderMemo> m_memo;
};

} // namespace warmgraph::store
