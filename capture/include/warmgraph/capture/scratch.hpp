// Scratch memory that is found by name, for Recorder::alloc.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/shadow_set.hpp"

namespace warmgraph {

/// Scratch regions of the runs of one function. Not thread-safe. Owns the memory.
class ScratchPool {
public:
    enum class Kind : std::uint8_t { memory, shadow }; ///< shadow: addresses without memory, only for captures
    ScratchPool(std::shared_ptr<backends::Device> device, Kind kind) : m_device(std::move(device)), m_kind(kind) {}
    ScratchPool(const ScratchPool&) = delete;
    ScratchPool& operator=(const ScratchPool&) = delete;
    ~ScratchPool();

    /// Begins a run. Within a run each name has one size. The next run may ask for another size (a function with
    /// variants by shape).
    void begin_run() noexcept;
    /// Returns the region of that name and allocates it, or allocates it again, when needed. invalid_argument: this run
    /// already asked for another size.
    [[nodiscard]] Result<MemoryRef> get(std::string_view name, std::uint64_t bytes);
    /// Returns the regions in order of first use.
    [[nodiscard]] std::vector<std::pair<std::string, MemoryRef>> regions() const;
    /// Makes shadows with the names and sizes of the regions of `other`. `first`: the number of the first region in
    /// `shuffle`.
    [[nodiscard]] Result<void> mirror(const ScratchPool& other, const Shuffle& shuffle, std::size_t first);
    /// Fills the memory with zeros, because a restored graph's scratch also begins with zeros.
    [[nodiscard]] Result<void> clear();
    /// Leaks the memory, because work that never ends still uses it.
    void abandon() noexcept { m_is_abandoned = true; }

private:
    std::shared_ptr<backends::Device> m_device;
    Kind m_kind;
    struct Region {
        std::string name;
        MemoryRef memory;
        bool in_use = false; ///< whether this run asked for the region
        MemoryRef owned;     ///< the allocation that contains `memory`
    };
    [[nodiscard]] Result<Region> make(std::string_view name, std::uint64_t bytes, std::uint64_t shift);
    std::vector<Region> m_regions; ///< in order of first use
    bool m_is_abandoned = false;
};

} // namespace warmgraph
