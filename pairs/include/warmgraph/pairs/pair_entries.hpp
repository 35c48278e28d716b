// The stored entries of a pair: one for forward, one for each backward of it, all with forward's recording id.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "warmgraph/store/local_store.hpp"
#include "warmgraph/store/touched.hpp"

namespace warmgraph {

/// Thread-safe. Nothing is asked of it where caching is off.
class PairEntries {
public:
    /// `touched` outlives it. `most`: so many forwards are kept.
    PairEntries(std::shared_ptr<store::LocalStore> store, store::Touched& touched, std::size_t most)
        : m_store(std::move(store)), m_touched(touched), m_most(most)
    {
    }

    /// Backward is published before the forward that it belongs to, which is kept here until then: false. So where a
    /// forward is found, its backward is there. not_found: neither kept nor stored is that forward.
    [[nodiscard]] Result<bool> publish(const cachefmt::Entry& entry);
    /// What one of them is refused for is true of all of its recording.
    [[nodiscard]] Result<void> publish_tombstone(const cachefmt::Entry& tombstone);

    /// Whether a call of the `part` may use the entry: a forward not without a backward `beside` it.
    [[nodiscard]] static bool is_usable(const cachefmt::EntryHeader& header, cachefmt::Part part,
                                        std::span<const store::Variant> beside);

private:
    using Kept = std::shared_ptr<const cachefmt::Entry>;

    void keep(const cachefmt::Entry& forward);
    [[nodiscard]] Kept kept(const cachefmt::RecordingId& id) const;
    [[nodiscard]] Result<bool> is_stored(const cachefmt::EntryHeader& backward) const;

    std::shared_ptr<store::LocalStore> m_store;
    store::Touched& m_touched;
    std::size_t m_most;
    mutable std::mutex m_mutex;
    std::vector<Kept> m_kept; ///< forwards without backward, the oldest first
};

} // namespace warmgraph
