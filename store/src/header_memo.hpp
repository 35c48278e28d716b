// Headers that were read and verified, so that a process which looks at an entry again need not: a table of graphs reads
// each of its headers to see what there is to load ahead, to find the one that fits, and at the first call.
#pragma once

#include <map>
#include <mutex>

#include "warmgraph/store/store.hpp"

namespace warmgraph::store {

/// Thread-safe.
class HeaderMemo {
public:
    /// Of what has this stamp, which is asked of the tier first. Null: it must be read.
    [[nodiscard]] Header find(const EntryKey& key, const Stamp& stamp) const;
    /// Whether any entry of the function's is known: else the first look may read at once.
    [[nodiscard]] bool knows(const FunctionKey& function) const;
    /// A verified one, as it was read with this stamp. Nothing of a tier that cannot tell one state from the next. Where it
    /// would be too much, all that was kept goes before.
    void keep(const Stamp& stamp, Header header);

private:
    struct Kept {
        Stamp stamp;
        Header header;
        std::uint64_t bytes = 0;
    };
    mutable std::mutex m_mutex; // guards the rest
    std::map<EntryKey, Kept> m_kept;
    std::uint64_t m_bytes = 0;
};

} // namespace warmgraph::store
