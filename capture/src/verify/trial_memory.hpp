// Copies of everything a call touches, in which captures are run and restored graphs replayed without the caller's
// memory noticing: tensors that alias in the call alias here, each allocation is fenced by canaries.
//
// Two copies of each: the snapshot, taken before the call's answer is computed, and the memory that trials run in,
// which starts from the snapshot each time. Both lie on the device. They take at most a share of what is free:
// - what the function may write (inputs, outputs, read-write states) must fit, or nothing is recorded;
// - read-only states come after that, the smallest first. What does not fit is used in place, and a fingerprint, taken
// before the answer, shows after each trial that nothing wrote it. Fences and another address are lost for those; their
//   slots are proven all the same, since captures moved them like every other region.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "classify/classify.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

class TrialMemory {
public:
    /// Allocates the copies and takes the snapshot (blocking; work that writes the memory must be done). `most`: bytes
    /// of device memory; nullopt: half of what is free. not_recordable names a region that does not fit. Regions that are
    /// neighbours in `apart` lie in one allocation, in their order, a multiple of the first one's size from each other: who
    /// takes the second one's start for the first one's end reads canaries, not what nobody mapped. Where they cannot
    /// lie so, not_recordable.
    [[nodiscard]] static Result<std::unique_ptr<TrialMemory>> create(std::shared_ptr<backends::Device> device,
                                                                     const Interface& interface, const Frame& frame,
                                                                     std::optional<std::uint64_t> most = std::nullopt,
                                                                     std::span<const Neighbours> apart = {});
    TrialMemory(const TrialMemory&) = delete;
    TrialMemory& operator=(const TrialMemory&) = delete;
    ~TrialMemory();

    /// What a trial's outputs start with. In trials they differ from the call's everywhere: a buffer that holds the
    /// right results already would prove nothing of what writes them. A capture that reads page-locked memory on the
    /// host sees what is there.
    enum class Outputs : std::uint8_t { as_they_were, disturbed };
    /// Contents as in the snapshot. `placement` 0 or 1: two sets of addresses of the same alignment class.
    [[nodiscard]] Result<void> reset(std::size_t placement, Outputs outputs = Outputs::disturbed);
    /// Where each region is in the placement in use; the caller's own memory where it is used in place.
    [[nodiscard]] const std::vector<MemoryRef>& regions() const noexcept { return m_regions; }
    [[nodiscard]] const std::vector<MemoryRef>& original() const noexcept { return m_original; }
    /// Which regions a run's results are compared in: those that the function may write.
    [[nodiscard]] bool is_writable(std::size_t region) const noexcept;

    /// After a trial: verification_failed where a canary was overwritten, or a copied read-only state.
    [[nodiscard]] Result<void> check_trial() const;
    /// After a capture at the memory as reset(placement, as_they_were) left it: not_recordable names a region of
    /// page-locked host memory that the callable wrote on the host.
    [[nodiscard]] Result<void> check_host_regions() const;
    /// Before the first trial: not_recordable where one of the caller's read-only states is gone, or has other contents
    /// than before the answer.
    [[nodiscard]] Result<void> check_read_only() const;
    /// After trials, of what they used in place: verification_failed where it has other contents than before the
    /// answer.
    [[nodiscard]] Result<void> check_in_place() const;

    /// The caller's own memory, where a graph with fixed addresses has to run: contents as trials start with them.
    [[nodiscard]] Result<void> reset_original();
    /// Contents as in the snapshot.
    [[nodiscard]] Result<void> write_back();

    /// Words of 8 bytes, in regions that were not declared as floating point, which lie in one of the windows.
    struct Word {
        std::size_t region = 0;
        std::uint64_t offset = 0, value = 0;
    };
    /// In the snapshot. not_recordable: more than can be looked at.
    [[nodiscard]] Result<std::vector<Word>> words_in(std::span<const backends::AddressWindow> windows) const;

    /// Leaks everything: work that never ends still uses it.
    void abandon() noexcept { m_is_abandoned = true; }

private:
    enum class Kind : std::uint8_t { writable, read_only, in_place };
    struct Group { // tensors that overlap, directly or through others
        Kind kind = Kind::writable;
        MemoryRef original;           ///< from the first to the last byte of any of them, the caller's
        MemoryRef snapshot;           ///< of a copied one
        MemoryRef memory;             ///< of a copied one: fence, slack, contents, fence
        backends::Fingerprint before; ///< of one in place
        std::uint64_t start = 0;      ///< of the contents in memory, for the placement in use
        bool on_host = false;
        bool is_in_block = false; ///< `memory` is a part of m_blocks
        std::vector<std::size_t> members;
        [[nodiscard]] Address contents() const noexcept { return memory.address + start; }
    };
    TrialMemory(std::shared_ptr<backends::Device> device, const Interface& interface, const Frame& frame);
    [[nodiscard]] Group group_of(const Frame& frame, std::vector<std::size_t> members);
    [[nodiscard]] Result<void> add_groups(std::vector<Group> groups, std::uint64_t most);
    [[nodiscard]] Result<void> copy_group(Group& group);
    [[nodiscard]] Result<void> put_apart(std::span<const Neighbours> all, std::uint64_t most);
    [[nodiscard]] Result<void> put_chain_apart(const std::vector<std::size_t>& chain, const std::string& why,
                                               std::uint64_t& left);
    [[nodiscard]] Result<void> disturb_outputs(const Group& group, const Address& contents);
    [[nodiscard]] Result<void> check_fences(const Group& group) const;
    [[nodiscard]] Result<bool> is_as_before(const Group& group) const;
    [[nodiscard]] const std::string& name(const Group& group) const noexcept;

    std::shared_ptr<backends::Device> m_device;
    const Interface& m_interface;
    std::vector<DType> m_types; ///< by region
    std::vector<Group> m_groups;
    std::vector<MemoryRef> m_blocks;      ///< of groups that were put apart: their `memory` is a part of one
    std::vector<std::uint8_t> m_writable; ///< by region
    std::vector<MemoryRef> m_regions;
    std::vector<MemoryRef> m_original; ///< the caller's
    bool m_is_abandoned = false;
};

} // namespace warmgraph
