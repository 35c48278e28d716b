// Copies of everything a call touches, in which a function can be run and a restored graph replayed without the
// caller's memory noticing: tensors that alias in the call alias here, each allocation is fenced by canaries.
//
// Read-only states that are too large to copy (a model's weights beside themselves would not fit the device) are used in
// place. What is lost is the fence, and the certainty that a graph cannot harm them: instead their SHA-256 is taken
// before, and check_in_place() proves that no run has written them. What a graph takes from them is verified all the
// same, through the outputs; and in the captures they moved like every other region, so that their slots are proven too.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

/// Bytes of one read-only state above which it is used in place.
inline constexpr std::uint64_t k_largest_copied_weights = 64ULL << 20;

class TrialMemory {
public:
    /// Reads the caller's memory (its stream must be idle) and allocates the copies.
    [[nodiscard]] static Result<std::unique_ptr<TrialMemory>> create(
        std::shared_ptr<backends::Device> device, const Interface& interface, const Frame& frame,
        std::uint64_t largest_copied_weights = k_largest_copied_weights);
    TrialMemory(const TrialMemory&) = delete;
    TrialMemory& operator=(const TrialMemory&) = delete;
    ~TrialMemory();

    /// Contents as they were at the call, but for those of outputs, which differ from them everywhere: a buffer that holds the
    /// right results already would prove nothing of what writes them. `placement` 0 or 1: two sets of addresses of the same
    /// alignment class.
    [[nodiscard]] Result<void> reset(std::size_t placement);
    [[nodiscard]] const std::vector<MemoryRef>& regions() const noexcept { return m_regions; }
    /// Each region's bytes now; none of those in place. verification_failed names the region when a canary around it was
    /// overwritten.
    [[nodiscard]] Result<std::vector<Bytes>> collect() const;
    /// verification_failed names a region in place that has other contents than at create().
    [[nodiscard]] Result<void> check_in_place() const;

    /// The same for the caller's own memory, where a graph with fixed addresses has to run.
    [[nodiscard]] Result<void> reset_original();
    /// Contents as they were at the call.
    [[nodiscard]] Result<void> write_back();
    [[nodiscard]] Result<std::vector<Bytes>> collect_original() const;

private:
    enum class Kind : std::uint8_t { copied, in_place };
    struct Group { // tensors that overlap, directly or through others
        Kind kind = Kind::copied;
        MemoryRef original;      ///< from the first to the last byte of any of them, the caller's
        Bytes contents;          ///< of a copied one
        Bytes disturbed;         ///< the same with other outputs; empty where there are none
        Digest digest;           ///< of one in place
        MemoryRef memory;        ///< of a copied one: fence, slack, contents, fence
        std::uint64_t start = 0; ///< of the contents in memory, for the placement in use
        std::vector<std::size_t> members;
        [[nodiscard]] const Bytes& start_contents() const noexcept { return disturbed.empty() ? contents : disturbed; }
    };
    TrialMemory(std::shared_ptr<backends::Device> device, const Interface& interface, const Frame& frame)
        : m_device(std::move(device)), m_interface(interface), m_regions(frame.memory), m_original(frame.memory)
    {
    }
    [[nodiscard]] Result<void> add_group(const Frame& frame, std::vector<std::size_t> members,
                                         std::uint64_t largest_copied_weights);
    [[nodiscard]] Result<void> copy_group(const Frame& frame, Group& group);
    void disturb_outputs(const Frame& frame, Group& group) const;
    [[nodiscard]] Result<void> check_fences(const Group& group) const;
    [[nodiscard]] Result<Bytes> read(const MemoryRef& memory) const;
    [[nodiscard]] Result<Digest> digest(const MemoryRef& memory) const;
    [[nodiscard]] Result<std::vector<Bytes>> read_all(const std::vector<MemoryRef>& regions) const;

    std::shared_ptr<backends::Device> m_device;
    const Interface& m_interface;
    std::vector<Group> m_groups;
    std::vector<MemoryRef> m_regions;
    std::vector<MemoryRef> m_original; ///< the caller's
};

} // namespace warmgraph
