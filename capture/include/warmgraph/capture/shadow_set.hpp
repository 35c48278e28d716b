// Addresses without memory for one capture: a range for each tensor of the call.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

/// How the ranges of a second capture are laid out. Allocators place ranges one after another, so all regions could
/// move by the same distance from the first capture to the second, and a word's movement would not show which region it
/// belongs to. A shuffle reverses the order and begins region i (i + 1) * `shift` bytes into its range. Drivers give
/// ranges in steps of 2 MiB, so a shift of 4 KiB gives up to 512 regions different distances.
struct Shuffle {
    std::uint64_t shift = 0; ///< bytes, a multiple of 4 KiB; 0: same order, no shift
    [[nodiscard]] std::uint64_t of(std::size_t region) const noexcept { return shift * (region + 1); }
};

/// The tensors that share one range of addresses. Captures of overlapping tensors in several arrangements show whether
/// the function depends on the overlap. Captures read no device memory, so overlapping tensors may also be placed
/// apart.
enum class ShadowGrouping : std::uint8_t {
    tensors,      ///< each tensor has its own range
    groups,       ///< overlapping tensors share a range, at their distances in the call
    groups_equal, ///< overlapping tensors share a range and all begin at its start
    groups_steps, ///< overlapping tensors share a range; each begins a small step behind the previous tensor
};

/// The ranges of one capture. Owns the ranges, so it must outlive captures that hold their addresses.
class ShadowSet {
public:
    explicit ShadowSet(backends::Device& device) : m_device(device) {}
    ShadowSet(const ShadowSet&) = delete;
    ShadowSet& operator=(const ShadowSet&) = delete;
    ~ShadowSet();

    /// Reserves the ranges as far from the frame's memory as the device allows.
    [[nodiscard]] Result<void> reserve(const Frame& frame, const Shuffle& shuffle,
                                       ShadowGrouping grouping = ShadowGrouping::tensors);
    /// Fills the page-locked host regions, which captures may read, with values that differ from the values in `from`.
    /// Integers differ by one.
    [[nodiscard]] Result<void> give_other_contents(const std::vector<MemoryRef>& from, const Frame& frame);
    /// Fails with not_recordable and names the host region if a capture changed its contents.
    [[nodiscard]] Result<void> check_host_regions(const Interface& interface) const;
    [[nodiscard]] const std::vector<MemoryRef>& regions() const noexcept { return m_regions; }

private:
    [[nodiscard]] Result<MemoryRef> make(const Address& like, std::uint64_t size);

    backends::Device& m_device;
    std::vector<MemoryRef> m_owned;
    std::vector<MemoryRef> m_regions; ///< in the order of Interface::regions
    /// Each host region's index, and the fingerprint of the contents given to it.
    std::vector<std::pair<std::size_t, backends::Fingerprint>> m_given;
};

} // namespace warmgraph
