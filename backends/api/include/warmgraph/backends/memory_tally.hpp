// Counts a device's own memory, and finds its peak between two points.
#pragma once

#include <cstdint>
#include <mutex>

namespace warmgraph::backends {

/// Counts the device memory that a Device holds for its users: allocations, and the physical memory behind shadows and
/// decoys. Host memory, and memory of the driver (code, graphs) or of other libraries, does not count. Thread-safe.
class MemoryTally {
public:
    MemoryTally() = default;
    MemoryTally(const MemoryTally&) = delete;
    MemoryTally& operator=(const MemoryTally&) = delete;
    ~MemoryTally() = default;

    void add(std::uint64_t bytes) noexcept { change(static_cast<std::int64_t>(bytes)); }
    void remove(std::uint64_t bytes) noexcept { change(-static_cast<std::int64_t>(bytes)); }

    /// Finds the most memory that was added since its beginning and not yet removed, while it does not pause. Work of
    /// others on the device counts too. The tally must outlive it. One thread at a time may use it.
    class Watch {
    public:
        explicit Watch(MemoryTally& tally) noexcept : m_tally(&tally) { resume(); }
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { pause(); }

        void pause() noexcept;
        void resume() noexcept;
        [[nodiscard]] std::uint64_t peak() const noexcept;

    private:
        friend class MemoryTally;
        MemoryTally* m_tally;
        Watch* m_next = nullptr;
        bool m_is_running = false;
        std::int64_t m_now = 0, m_peak = 0;
    };

private:
    void change(std::int64_t bytes) noexcept;

    std::mutex m_mutex; // guards the watches that run
    Watch* m_first = nullptr;
};

} // namespace warmgraph::backends
