// The counters of remotes over all processes. The folder keeps them as events in remotes/usage.json, with a remote's
// word as their reason.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/remote/remote_tier.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::remote {

/// The word of a remote: "s3.models-warmgraph" for "s3://models/warmgraph". At most 48 letters, digits, '.', '_' and
/// '-'; a longer label ends with digits of its digest.
[[nodiscard]] std::string word_of(std::string_view label);

/// Adds what this process did with the remotes to the folder's counters: when it ends, and when the process exits. Best
/// effort; a folder that is only read gets nothing. Does nothing in a forked child. `store` must outlive it.
class LastingCounts {
public:
    LastingCounts(store::LocalStore& store, std::vector<std::shared_ptr<RemoteTier>> remotes);
    LastingCounts(const LastingCounts&) = delete;
    LastingCounts& operator=(const LastingCounts&) = delete;
    ~LastingCounts() { add(); }

private:
    /// Adds what happened since the last call. Thread-safe.
    void add() noexcept;

    store::LocalStore& m_store;
    std::vector<std::shared_ptr<RemoteTier>> m_remotes;
    std::mutex m_mutex;
    std::vector<Counts> m_added; ///< guarded by m_mutex: the counts that the folder has
    pid_t m_process;
    ExitHook m_at_exit{[this] { add(); }};
};

/// The counters of one remote over all processes.
struct RemoteTotal {
    std::uint64_t hits = 0, misses = 0, puts = 0, bytes_read = 0, bytes_written = 0;
    std::uint64_t bytes_left = 0;             ///< not fetched, because an object's header sufficed
    std::uint64_t read_us = 0, write_us = 0;  ///< microseconds
    std::uint64_t damaged = 0, untrusted = 0; ///< objects that were refused
    std::uint64_t errors = 0;                 ///< calls that failed for another reason
};
/// By the remote's word.
[[nodiscard]] std::map<std::string, RemoteTotal> totals(const store::LocalStore& store);

} // namespace warmgraph::remote
