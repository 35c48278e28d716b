// The log line at the start: how many stored entries fit this machine, and why other entries do not.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "cache/cache_settings.hpp"

namespace warmgraph {

/// Thread-safe.
class CompatibilityLog {
public:
    /// Logs one line per device at level info: how many stored entries fit the device, and why other entries do not.
    /// `store`: null if caching is off.
    void tell(const CacheSettings& settings, store::LocalStore* store, const backends::Device& device);

private:
    std::mutex m_mutex;
    std::set<std::string> m_told; ///< ids of the devices that have their log line
};

} // namespace warmgraph
