// Memory for the pool of a capture: segments in one range of addresses, in the order of the requests.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "device/core.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::cuda {

/// The range is larger than the device's memory; only addresses are reserved. It begins up to 1 GiB behind a random
/// multiple of 4 GiB above 2^44: near the driver's own first addresses (0x302000000), two small neighbouring numbers may look like an
/// address.
class CudaCapturePool final : public CapturePool {
public:
    [[nodiscard]] static Result<std::shared_ptr<CapturePool>> open(Core& core, PoolMemory memory);
    CudaCapturePool(Core& core, PoolMemory memory, std::uint64_t unit, std::uint64_t behind)
        : m_core(core), m_memory(memory), m_unit(unit), m_behind(behind)
    {
    }
    CudaCapturePool(const CudaCapturePool&) = delete;
    CudaCapturePool& operator=(const CudaCapturePool&) = delete;
    ~CudaCapturePool() override;
    [[nodiscard]] Result<std::uint64_t> allocate(std::uint64_t bytes) override;
    void release(std::uint64_t start) noexcept override;

private:
    using Parts = std::vector<std::uint64_t>; ///< sizes of a segment's mappings, in bytes, in the order of addresses
    [[nodiscard]] Result<void> reserve(std::uint64_t bytes);
    /// Maps one piece of memory of `piece` bytes as often as it fits into the rest of the segment.
    [[nodiscard]] Result<void> map(std::uint64_t start, std::uint64_t size, std::uint64_t piece, Parts& parts) const;
    [[nodiscard]] Result<void> map(std::uint64_t start, std::uint64_t size, Parts& parts) const;
    void unmap(std::uint64_t start, const Parts& parts) const noexcept;

    Core& m_core;
    PoolMemory m_memory;
    std::uint64_t m_unit;                      ///< bytes; all sizes are multiples
    std::uint64_t m_behind;                    ///< bytes from a multiple of 4 GiB to the next segment
    std::uint64_t m_start = 0, m_size = 0;     ///< the reserved range
    std::mutex m_mutex;                        // guards the members below
    std::uint64_t m_used = 0;                  ///< bytes from the start that segments took
    std::map<std::uint64_t, Parts> m_segments; ///< live segments by start address
};

} // namespace warmgraph::backends::cuda
