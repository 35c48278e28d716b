// Scratch memory by name: what Recorder::alloc hands out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/shadow_set.hpp"

namespace warmgraph {

/// Not thread-safe. Owns its memory.
class ScratchPool {
public:
    enum class Kind : std::uint8_t { memory, shadow }; ///< shadow: addresses for captures only
    ScratchPool(std::shared_ptr<backends::Device> device, Kind kind) : m_device(std::move(device)), m_kind(kind) {}
    ScratchPool(const ScratchPool&) = delete;
    ScratchPool& operator=(const ScratchPool&) = delete;
    ~ScratchPool();

    /// Within one run a name has one size; the next run may ask for another (a function with variants by shape).
    void begin_run() noexcept;
    /// The region of that name, made or made anew as needed. invalid_argument when this run asked for another size.
    [[nodiscard]] Result<MemoryRef> get(std::string_view name, std::uint64_t bytes);
    /// In order of first use.
    [[nodiscard]] std::vector<std::pair<std::string, MemoryRef>> regions() const;
    /// Shadows of the same names and sizes as another pool's, shuffled as regions `first` and following.
    [[nodiscard]] Result<void> mirror(const ScratchPool& other, const Shuffle& shuffle, std::size_t first);
    /// Zeros, which is what a restored graph finds in its own.
    [[nodiscard]] Result<void> clear();
    /// Leaks its memory: work that never ends still uses it.
    void abandon() noexcept { m_is_abandoned = true; }

private:
    std::shared_ptr<backends::Device> m_device;
    Kind m_kind;
    struct Region {
        std::string name;
        MemoryRef memory;
        bool in_use = false; ///< asked for in this run
        MemoryRef owned;     ///< what `memory` is part of
    };
    [[nodiscard]] Result<Region> make(std::string_view name, std::uint64_t bytes, std::uint64_t shift);
    std::vector<Region> m_regions; ///< in order of first use
    bool m_is_abandoned = false;
};

} // namespace warmgraph
