// Addresses for one capture, a range for each tensor of the call.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

/// How a second set of addresses differs from the first one beyond being elsewhere. Allocators place ranges one after
/// another, so that two sets made alike may lie at one distance from each other, which could not tell the tensors apart.
/// Here the order is the opposite, and region i lies (i + 1) * `shift` bytes into its range: as drivers give ranges in
/// steps of 2 MiB, a shift of 4 KiB alone gives up to 512 regions distances of their own.
struct Shuffle {
    std::uint64_t shift = 0; ///< bytes, a multiple of 4 KiB; 0: in order, each at the start of its range
    [[nodiscard]] std::uint64_t of(std::size_t region) const noexcept { return shift * (region + 1); }
};

/// Owns its ranges; outlives the captures that hold them.
class ShadowSet {
public:
    explicit ShadowSet(backends::Device& device) : m_device(device) {}
    ShadowSet(const ShadowSet&) = delete;
    ShadowSet& operator=(const ShadowSet&) = delete;
    ~ShadowSet();

    /// One range for each tensor: also those that alias in the call, since capture reads no memory and separate ranges
    /// tell them apart.
    [[nodiscard]] Result<void> reserve(const Frame& frame, const Shuffle& shuffle);
    [[nodiscard]] const std::vector<MemoryRef>& regions() const noexcept { return m_regions; }

private:
    [[nodiscard]] Result<MemoryRef> make(const Address& like, std::uint64_t size);

    backends::Device& m_device;
    std::vector<MemoryRef> m_owned;
    std::vector<MemoryRef> m_regions; ///< as Interface::regions
};

} // namespace warmgraph
