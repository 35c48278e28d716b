// Entries and images over tiers of bytes. Encodes and decodes them, and verifies every read.
//
// Thread-safe where the tiers are. A failure is an Error for the caller to count, never an exception.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/store/layered.hpp"
#include "warmgraph/store/packing.hpp"

namespace warmgraph::store {

using cachefmt::Entry;
using cachefmt::EntryHeader;

/// Why an entry is read: to use it now, or ahead of a use that note_use() will report.
enum class ReadPurpose : std::uint8_t { use, preload };

/// A verified header. Shared because it is large: a model with hundreds of weights has hundreds of facts.
using Header = std::shared_ptr<const EntryHeader>;

/// A verified header or an Error. Like Result<EntryHeader>, but copies share the header.
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

/// A variant in a function's folder.
struct Variant {
    Digest guards_digest;                            ///< the digest in its file name
    std::uint64_t size = 0;                          ///< bytes on disk
    std::chrono::system_clock::time_point last_used; ///< the time of the last use, or when it was put
    VariantHeader header;                            ///< the payload was not read
};

/// An entry of a function and its last use; its header was not read.
struct EntryUse {
    Digest guards_digest;
    std::chrono::system_clock::time_point last_used; ///< or when it was put
};

/// The largest sizes that are read or written, and the trusted signatures.
struct Caps {
    cachefmt::Limits entry{};
    std::uint64_t image_bytes =
        256ULL << 20; ///< at most entry.image_bytes; needed because an image is verified only after it was read
    cachefmt::Trust
        trust{};         ///< entries that this trust does not accept are `untrusted`; its secret key signs new entries
    Packings packings{}; ///< compression of new objects
};

class HeaderMemo; // src/header_memo.hpp

/// Callbacks that count what happens to entries. They run in the calling thread.
struct StoreEvents {
    /// Called by entry() and set_aside() when an entry was read and cannot be used, with the reason.
    std::function<void(const EntryKey&, const Stamp&, const Error&)> refused{};
    std::function<void(const EntryKey&)> published{}, set_aside{};
    /// Writes a copy of a remote's object into the first tier, perhaps later; null: it is written at once.
    std::function<void(const Name&, Bytes)> keep{};
};

/// A store over one tier, and read-only layers below it for objects that the tier does not have or has damaged.
class Store {
public:
    /// `tier` must outlive the store.
    explicit Store(Tier& tier, const Caps& caps = {}, StoreEvents events = {});
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// Adds a layer below the earlier ones, with its own `trust`. The store only reads it; what a remote gives is copied
    /// into the first tier (Tier::remote_label). A layer that fails hides nothing that another one has. Call this before
    /// other threads use the store.
    void add_layer(std::shared_ptr<Tier> layer, const cachefmt::Trust& trust);
    /// The first tier, for code that copies bytes from one tier to another. Lives as long as this store, like tiers().
    [[nodiscard]] Tier& tier() noexcept { return *m_levels.front().tier; }
    /// The tier and its layers, in the order in which they are read; only the first is written.
    [[nodiscard]] Tiers tiers() const;

    // Every key is checked (check_key, invalid_argument) before a tier sees it.

    // A header is not read again while its object in the tier has the same stamp.

    /// Returns all variants of a function, with verified headers, sorted by digest. A damaged variant carries its
    /// error.
    [[nodiscard]] Result<std::vector<Variant>> variants(const FunctionKey& function) const;
    /// Returns the entries of a function, the last used first, and reads none of them. header() reads one; it returns null
    /// for an entry that was removed meanwhile.
    [[nodiscard]] Result<std::vector<EntryUse>> by_last_use(const FunctionKey& function) const;
    /// Reads the header of one key; null when the entry does not exist. The format is part of the key, so an object of
    /// another format, newer or not, is damaged.
    [[nodiscard]] Result<Header> header(const EntryKey& key) const;
    /// Returns one fully verified entry and, with ReadPurpose::use, marks it as used now; nullopt: not found. Corrupt and
    /// stale entries (of any format) give their error, and Tier::refuse() is called for them. Untrusted entries stay,
    /// and are not read beyond their header. `stamp` is set when the first tier gives the entry, for is_still().
    [[nodiscard]] Result<std::optional<Entry>> entry(const EntryKey& key, ReadPurpose reading = ReadPurpose::use,
                                                     Stamp* stamp = nullptr);
    /// Whether the first tier still has the same object that entry() read, so that it need not be read again. False
    /// when unsure, and for an empty Stamp. Reads nothing.
    [[nodiscard]] bool is_still(const EntryKey& key, const Stamp& stamp) noexcept;
    /// Marks an entry as used now. Best effort.
    void note_use(const EntryKey& key) noexcept;
    /// Encodes, signs and puts an entry. Replaces an entry with the same key.
    [[nodiscard]] Result<void> publish(const Entry& entry);
    /// Removes the entry from the first tier. In this process the layers do not give the entry any more.
    [[nodiscard]] Result<void> remove(const EntryKey& key);
    /// Makes every tier refuse an intact but unusable entry, unless the entry was replaced meanwhile; `reason` says
    /// why. Best effort.
    void set_aside(const EntryHeader& header, const Error& reason) noexcept;

    /// Returns an image that was verified against its digest; nullopt when it is missing or damaged. For a damaged
    /// image Tier::refuse() is called. `size` comes from the entry: no more bytes are read.
    [[nodiscard]] Result<std::optional<Bytes>> image(const Digest& digest, std::uint64_t size = ~0ULL);
    /// Like image(), for an image that an entry needs. not_found: the image is missing or damaged; corrupt: it has
    /// another size.
    [[nodiscard]] Result<Bytes> image_of_entry(const cachefmt::ImageRef& image);
    /// Puts the blob, or marks it as used now if it is there already. Returns true when it was put. unsupported: the
    /// blob is larger than the cap. REQUIRES: is_blob(kind).
    [[nodiscard]] Result<bool> publish_image(ByteView blob, ArtifactKind kind = ArtifactKind::images);
    /// An object's bytes from the first tier that has it. Images are verified and uncompressed, other objects
    /// unverified.
    [[nodiscard]] Result<std::optional<Bytes>> object(const Name& name);

private:
    struct Level {
        Tier* tier;
        Caps caps;
        std::shared_ptr<Tier> layer{}; ///< owns the tier; null for the first level
        std::shared_ptr<HeaderMemo> memo{};
    };
    /// Asks each level in turn until one gives a usable answer.
    template <class T, class Ask>
    [[nodiscard]] Result<T> ask_all(Ask ask) const;
    [[nodiscard]] Result<std::optional<Entry>> entry_in(const Level& level, const EntryKey& key, ReadPurpose reading,
                                                        Stamp* stamp) const;
    [[nodiscard]] Result<std::optional<Bytes>> image_in(const Level& level, const Digest& digest,
                                                        std::uint64_t size) const;
    /// Copies what a remote gave into the first tier. Best effort: a folder that is only read stays as it is.
    void keep(const Name& name, Bytes bytes) const;

    void note_worth(const Entry& entry) const;

    std::vector<Level> m_levels; ///< only the first level is written
    /// How long a remote's image may take: as long as the entry that needs it says a hit saves. Guarded by m_worth_mutex.
    mutable std::map<Digest, std::chrono::milliseconds> m_worth;
    mutable std::mutex m_worth_mutex;
    StoreEvents m_events;
};

} // namespace warmgraph::store
