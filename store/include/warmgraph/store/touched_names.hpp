// The names of the objects that this process recorded, found or used, for Cache::save_cache_artifacts.
#pragma once

#include <mutex>
#include <set>

#include "warmgraph/store/local_store.hpp"

namespace warmgraph::store {

/// Thread-safe.
class TouchedNames {
public:
    void note(const cachefmt::EntryKey& key) { insert(m_entries, key); }
    void note(const ArtifactName& name) { insert(m_artifacts, name); }
    void forget(const ArtifactName& name)
    {
        const std::scoped_lock lock{m_mutex};
        m_artifacts.erase(name);
    }
    [[nodiscard]] std::set<cachefmt::EntryKey> entries() const { return copy(m_entries); }
    /// Tuned configurations and PyTorch's artifacts.
    [[nodiscard]] std::set<ArtifactName> artifacts() const { return copy(m_artifacts); }

private:
    template <class T>
    void insert(std::set<T>& names, const T& name)
    {
        const std::scoped_lock lock{m_mutex};
        names.insert(name);
    }
    template <class T>
    [[nodiscard]] std::set<T> copy(const std::set<T>& names) const
    {
        const std::scoped_lock lock{m_mutex};
        return names;
    }
    mutable std::mutex m_mutex; ///< guards the rest
    std::set<cachefmt::EntryKey> m_entries;
    std::set<ArtifactName> m_artifacts;
};

} // namespace warmgraph::store
