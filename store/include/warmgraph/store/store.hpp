// Entries and images over tiers of bytes: encoded, decoded, and verified at every read.
//
// Thread-safe where the tiers are. A failure is an Error for the caller to count, never an exception.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/store/layered.hpp"
#include "warmgraph/store/packing.hpp"

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

/// An entry of a function and its last use; its header was not read.
struct EntryUse {
    Digest guards_digest;
    std::chrono::system_clock::time_point last_used; ///< or when it was put
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

/// What happens to entries, for those who count it. Called in the thread of the verb.
struct StoreEvents {
    /// entry() or set_aside(): what was read, and why it is not given.
    std::function<void(const EntryKey&, const Stamp&, const Error&)> refused{};
    std::function<void(const EntryKey&)> published{}, set_aside{};
};

/// Over one tier, and layers below it that are only read: what the tier does not have, or not whole, is looked for there.
class Store {
public:
    /// `tier` must outlive the store.
    explicit Store(Tier& tier, const Caps& caps = {}, StoreEvents events = {});
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// In the order of these calls. `trust` is the layer's own. Before other threads use the store.
    void add_layer(std::shared_ptr<Tier> layer, const cachefmt::Trust& trust);
    /// The bytes, for whoever fills one tier from another. Lives as long as this store, as tiers().
    [[nodiscard]] Tier& tier() noexcept { return *m_levels.front().tier; }
    /// The tier and its layers, in the order in which they are read; only the first is written.
    [[nodiscard]] Tiers tiers() const;

    // Every key is checked (check_key, invalid_argument) before a tier sees it.

    // A header that was read is not read again while the tier has its object with the same stamp.

    /// All variants of a function, headers verified, sorted by digest. Damaged ones carry their error.
    [[nodiscard]] Result<std::vector<Variant>> variants(const FunctionKey& function) const;
    /// Returns the entries of a function, the last used first, and reads none of them. header() reads one; it returns null
    /// for an entry that was removed meanwhile.
    [[nodiscard]] Result<std::vector<EntryUse>> by_last_use(const FunctionKey& function) const;
    /// One header by exact key; null when there is no such entry. The key has the format in its guards: an object of
    /// another format, newer or not, is damage here.
    [[nodiscard]] Result<Header> header(const EntryKey& key) const;
    /// One entry, fully verified and (Reading::use) counted as used now. nullopt: there is none. Corrupt and stale ones
    /// are refused to the tier, whatever format they claim, and the error is returned; untrusted ones stay, and are not
    /// read beyond their header. `stamp`: set where the first tier gives an entry, for is_still(); left as it is where a
    /// layer gives it.
    [[nodiscard]] Result<std::optional<Entry>> entry(const EntryKey& key, Reading reading = Reading::use,
                                                     Stamp* stamp = nullptr);
    /// Whether the first tier still has the very object that entry() read: then it need not be read again. False in doubt,
    /// and for a Stamp of nothing. Reads nothing.
    [[nodiscard]] bool is_still(const EntryKey& key, const Stamp& stamp) noexcept;
    /// Counts an entry as used now. Best effort.
    void note_use(const EntryKey& key) noexcept;
    /// Encodes, signs and puts. Replaces an entry of the same key.
    [[nodiscard]] Result<void> publish(const Entry& entry);
    /// From the first tier. This process is not given it from a layer any more.
    [[nodiscard]] Result<void> remove(const EntryKey& key);
    /// An entry that is whole and still could not be used, for `reason`: refused to every tier, unless it was replaced since
    /// this header was read. Best effort.
    void set_aside(const EntryHeader& header, const Error& reason) noexcept;

    /// Verified against the digest; nullopt when missing; damaged ones are refused to the tier and reported as missing.
    /// `size` is what the entry says: no more is read.
    [[nodiscard]] Result<std::optional<Bytes>> image(const Digest& digest, std::uint64_t size = ~0ULL);
    /// The same of one that an entry needs. not_found: it is missing or damaged; corrupt: it has another size.
    [[nodiscard]] Result<Bytes> image_of_entry(const cachefmt::ImageRef& image);
    /// Puts unless it is there already (then it is used now). Returns true when put. unsupported: over the cap. REQUIRES:
    /// is_blob(kind).
    [[nodiscard]] Result<bool> publish_image(ByteView blob, ArtifactKind kind = ArtifactKind::images);
    /// An object's bytes, of the first that has it: of an image its own, verified, however they are stored; of others those
    /// that are there, which are not verified.
    [[nodiscard]] Result<std::optional<Bytes>> object(const Name& name);

private:
    struct Level {
        Tier* tier;
        Caps caps;
        std::shared_ptr<Tier> layer{}; ///< the same tier; null: it is the first
        std::shared_ptr<HeaderMemo> memo{};
    };
    /// What the first has; else, and where that cannot be used, what the first layer has whose own can.
    template <class T, class Ask>
    [[nodiscard]] Result<T> ask_all(Ask ask) const;
    [[nodiscard]] Result<std::optional<Entry>> entry_in(const Level& level, const EntryKey& key, Reading reading,
                                                        Stamp* stamp) const;

    std::vector<Level> m_levels; ///< the first is written
    StoreEvents m_events;
};

} // namespace warmgraph::store
