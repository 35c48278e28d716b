// The line at start: which stored entries fit this machine, and why others do not.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "cache/cache_settings.hpp"

namespace warmgraph {

/// Thread-safe.
class FitLog {
public:
    /// One line in the log, at info, once for each device: how many stored entries fit it, and why others do not. `store`: null
    /// where caching is off.
    void tell(const CacheSettings& settings, store::LocalStore* store, const backends::Device& device);

private:
    std::mutex m_mutex;
    std::set<std::string> m_told; ///< ids of devices
};

} // namespace warmgraph
