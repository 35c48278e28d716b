// Addresses for one capture, a range for each tensor of the call.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

/// How a second set of addresses differs from the first one beyond being elsewhere. Allocators place ranges one after
/// another, so that two sets made alike may lie at one distance from each other, which could not tell the tensors
/// apart. Here the order is the opposite, and region i lies (i + 1) * `shift` bytes into its range: as drivers give
/// ranges in steps of 2 MiB, a shift of 4 KiB alone gives up to 512 regions distances of their own.
struct Shuffle {
    std::uint64_t shift = 0; ///< bytes, a multiple of 4 KiB; 0: in order, each at the start of its range
    [[nodiscard]] std::uint64_t of(std::size_t region) const noexcept { return shift * (region + 1); }
};

/// What gets a range of its own. Tensors that overlap in the call may be captured in several arrangements, which shows
/// whether the function asks how they lie: capture reads no device memory, so they may as well lie apart.
enum class Apart : std::uint8_t {
    tensors,      ///< each tensor
    groups,       ///< each group of tensors that overlap, at their distances in the call
    groups_equal, ///< each group, all of its tensors at one start
    groups_steps, ///< each group, its tensors a little one behind the other
};

/// Owns its ranges; outlives the captures that hold them.
class ShadowSet {
public:
    explicit ShadowSet(backends::Device& device) : m_device(device) {}
    ShadowSet(const ShadowSet&) = delete;
    ShadowSet& operator=(const ShadowSet&) = delete;
    ~ShadowSet();

    /// Far from the frame's memory, as far as the device can.
    [[nodiscard]] Result<void> reserve(const Frame& frame, const Shuffle& shuffle, Apart apart = Apart::tensors);
    /// Page-locked host regions are read by captures: each gets other numbers than `from` holds, of integers
    /// neighbours.
    [[nodiscard]] Result<void> give_other_contents(const std::vector<MemoryRef>& from, const Frame& frame);
    /// not_recordable names a host region whose contents a capture changed since.
    [[nodiscard]] Result<void> check_host_regions(const Interface& interface) const;
    [[nodiscard]] const std::vector<MemoryRef>& regions() const noexcept { return m_regions; }

private:
    [[nodiscard]] Result<MemoryRef> make(const Address& like, std::uint64_t size);

    backends::Device& m_device;
    std::vector<MemoryRef> m_owned;
    std::vector<MemoryRef> m_regions;                                   ///< as Interface::regions
    std::vector<std::pair<std::size_t, backends::Fingerprint>> m_given; ///< contents of host regions
};

} // namespace warmgraph
