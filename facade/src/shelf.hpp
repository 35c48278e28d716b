// A function's entries in the store, under the digests of its own guards: a file each, or a half of a pair's file.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache_impl.hpp"
#include "warmgraph/cachefmt/halves.hpp"

namespace warmgraph {

/// Thread-safe. REQUIRES: the cache has a store.
class Shelf {
public:
    explicit Shelf(Cache::Impl& cache) noexcept : m_cache(cache) {}
    Shelf(const Shelf&) = delete;
    Shelf& operator=(const Shelf&) = delete;
    virtual ~Shelf() = default;

    /// Of what was given to publish().
    enum class Published : std::uint8_t {
        stored,
        kept, ///< in this process, until the other half is there
    };

    // As LocalStore's.
    [[nodiscard]] virtual Result<store::Header> header(const cachefmt::EntryKey& key);
    [[nodiscard]] virtual Result<std::vector<store::Variant>> variants(const cachefmt::FunctionKey& function);
    [[nodiscard]] virtual Result<std::optional<cachefmt::Entry>> entry(const cachefmt::EntryKey& key,
                                                                       store::Reading reading);
    [[nodiscard]] virtual Result<Published> publish(const cachefmt::Entry& entry);
    [[nodiscard]] virtual Result<void> remove(const cachefmt::EntryKey& key);
    virtual void set_aside(const cachefmt::EntryHeader& header, const Error& reason);
    [[nodiscard]] virtual Result<std::unique_ptr<store::LoadMark>> begin_load(const cachefmt::EntryKey& key,
                                                                              const store::LoadTarget& target);
    virtual void note_use(const cachefmt::EntryKey& key);
    /// This process made or hit it (Cache::save_cache_artifacts).
    virtual void note_touched(const cachefmt::EntryKey& key);
    /// The digest by which people find it on disk.
    [[nodiscard]] virtual Digest name_on_disk(const cachefmt::EntryKey& key) { return key.guards_digest; }

protected:
    [[nodiscard]] Cache::Impl& cache() const noexcept { return m_cache; }
    [[nodiscard]] store::LocalStore& store() const noexcept { return *m_cache.store; }

private:
    Cache::Impl& m_cache;
};

/// Forward halves that this process recorded or loaded, for the backward halves that come. Thread-safe.
class ForwardStock {
public:
    explicit ForwardStock(std::size_t most) : m_most(most) {}
    void put(const cachefmt::Entry& forward);
    [[nodiscard]] std::optional<cachefmt::Entry> find(const Digest& guards_digest) const;

private:
    std::size_t m_most;
    mutable std::mutex m_mutex;
    std::vector<cachefmt::Entry> m_entries; ///< the oldest first
};

/// One half's view of the pair's files. A forward half may be in several, which differ in their backward half.
class HalfShelf final : public Shelf {
public:
    /// `saved`: names of what forward saves.
    HalfShelf(Cache::Impl& cache, cachefmt::Half half, std::shared_ptr<ForwardStock> stock,
              std::vector<std::string> saved)
        : Shelf(cache), m_half(half), m_stock(std::move(stock)), m_saved(std::move(saved))
    {
    }

    [[nodiscard]] Result<store::Header> header(const cachefmt::EntryKey& key) override;
    [[nodiscard]] Result<std::vector<store::Variant>> variants(const cachefmt::FunctionKey& function) override;
    [[nodiscard]] Result<std::optional<cachefmt::Entry>> entry(const cachefmt::EntryKey& key,
                                                               store::Reading reading) override;
    /// A forward half is kept; a backward half is stored with its forward, as one entry. not_found: that is not there.
    [[nodiscard]] Result<Published> publish(const cachefmt::Entry& entry) override;
    /// All files that have this half.
    [[nodiscard]] Result<void> remove(const cachefmt::EntryKey& key) override;
    void set_aside(const cachefmt::EntryHeader& header, const Error& reason) override;
    [[nodiscard]] Result<std::unique_ptr<store::LoadMark>> begin_load(const cachefmt::EntryKey& key,
                                                                      const store::LoadTarget& target) override;
    void note_use(const cachefmt::EntryKey& key) override;
    void note_touched(const cachefmt::EntryKey& key) override;
    [[nodiscard]] Digest name_on_disk(const cachefmt::EntryKey& key) override;

private:
    /// The pairs' headers with this half, the last used first. An error where the folder cannot be read.
    [[nodiscard]] Result<std::vector<cachefmt::EntryHeader>> files(const cachefmt::EntryKey& key);
    /// The first of those; nullopt also where the folder cannot be read.
    [[nodiscard]] std::optional<cachefmt::EntryKey> file(const cachefmt::EntryKey& key);
    [[nodiscard]] Result<Published> publish_tombstone(const cachefmt::Entry& half);

    cachefmt::Half m_half;
    std::shared_ptr<ForwardStock> m_stock;
    std::vector<std::string> m_saved;
};

} // namespace warmgraph
