// Verified headers, so that a process reads each header once. Without this, a table of graphs reads each of its headers
// three times: to find the entries to load ahead, to find the entry that fits, and at the first call.
#pragma once

#include <map>
#include <mutex>

#include "warmgraph/store/store.hpp"

namespace warmgraph::store {

/// Thread-safe.
class HeaderMemo {
public:
    /// Returns the header that was read with this stamp (the object's current stamp). Null: the header must be read.
    [[nodiscard]] Header find(const EntryKey& key, const Stamp& stamp) const;
    /// Whether any entry of the function is in the memo; if not, the caller need not search for each header.
    [[nodiscard]] bool knows(const FunctionKey& function) const;
    /// Keeps a verified header that was read with this stamp. Keeps nothing for a tier without versions. Drops all
    /// older headers when the limit would be exceeded.
    void keep(const Stamp& stamp, Header header);

private:
    struct MemoItem {
        Stamp stamp;
        Header header;
        std::uint64_t bytes = 0;
    };
    mutable std::mutex m_mutex; // guards the rest
    std::map<EntryKey, MemoItem> m_kept;
    std::uint64_t m_bytes = 0;
};

} // namespace warmgraph::store
