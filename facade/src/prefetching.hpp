// Cache::prefetch: device code that is loaded before anybody asks for it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// The threads of one cache, which end before it does and before the process exits. Thread-safe.
class Prefetching {
public:
    Prefetching() = default;
    Prefetching(const Prefetching&) = delete;
    Prefetching& operator=(const Prefetching&) = delete;
    ~Prefetching() { end(); }

    /// Once for each function and device: what is loaded stays loaded as long as the cache. `cache` outlives this.
    void begin(Cache::Impl& cache, const std::string& name, std::shared_ptr<Device::Impl> device);

private:
    void end();

    std::mutex m_mutex; // guards the rest
    std::set<std::pair<std::string, const void*>> m_begun;
    std::vector<std::jthread> m_threads;
    pid_t m_process = 0; ///< that began them: a forked child has no such threads
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
