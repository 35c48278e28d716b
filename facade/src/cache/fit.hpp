// The log line at start: how many stored entries fit this machine, and why others do not.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "cache/cache_settings.hpp"

namespace warmgraph {

/// Thread-safe.
class FitLog {
public:
    /// Logs one line per device at level info: how many stored entries fit it, and why others do not. `store`: null if
    /// caching is off.
    void tell(const CacheSettings& settings, store::LocalStore* store, const backends::Device& device);

private:
    std::mutex m_mutex;
    std::set<std::string> m_told; ///< ids of devices that were reported
};

} // namespace warmgraph
