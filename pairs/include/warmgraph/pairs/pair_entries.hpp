// The stored entries of a pair: one entry for forward, and one for each backward of it. All have the recording id of
// forward.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "warmgraph/store/local_store.hpp"
#include "warmgraph/store/touched_names.hpp"

namespace warmgraph {

/// Thread-safe. Only used if caching is on.
class PairEntries {
public:
    /// `touched` must outlive this object. `most`: how many forwards without a backward are kept.
    PairEntries(std::shared_ptr<store::LocalStore> store, store::TouchedNames& touched, std::size_t most)
        : m_store(std::move(store)), m_touched(touched), m_most(most)
    {
    }

    /// Publishes an entry. A forward is only kept in this object until its backward is published, and false is
    /// returned. So a stored forward always has a stored backward. not_found: the backward's forward is neither kept
    /// nor stored.
    [[nodiscard]] Result<bool> publish(const cachefmt::Entry& entry);
    /// Publishes the tombstone for all entries of the recording, because the refusal applies to all of them.
    [[nodiscard]] Result<void> publish_tombstone(const cachefmt::Entry& tombstone);

    /// Whether a call of `part` may use the entry. A forward can be used only if `beside` has a backward of it.
    [[nodiscard]] static bool is_usable(const cachefmt::EntryHeader& header, cachefmt::Part part,
                                        std::span<const store::Variant> beside);

private:
    using ForwardEntry = std::shared_ptr<const cachefmt::Entry>;

    void keep(const cachefmt::Entry& forward);
    [[nodiscard]] ForwardEntry kept(const cachefmt::RecordingId& id) const;
    [[nodiscard]] Result<bool> is_stored(const cachefmt::EntryHeader& backward) const;

    std::shared_ptr<store::LocalStore> m_store;
    store::TouchedNames& m_touched;
    std::size_t m_most;
    mutable std::mutex m_mutex;
    std::vector<ForwardEntry> m_kept; ///< forwards without a stored backward, the oldest first
};

} // namespace warmgraph
