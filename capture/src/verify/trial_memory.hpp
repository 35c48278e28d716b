// Copies of all memory of a call. Captures and restored graphs run there without changing the caller's memory. Tensors
// that overlap in the call overlap here too; canaries fence each allocation.
//
// There are two copies of each tensor's memory: the snapshot, taken before the call's answer, and the memory that
// trials run in, which starts from the snapshot each time. Both lie on the device and take at most a share of the free
// memory:
// - memory that the function may write (inputs, outputs, read-write states) must fit, or nothing is recorded;
// - read-only states follow, the smallest first, up to 64 MiB or a twentieth of all of them. A state that does not fit is used in place, without fences and without
//   another address. A fingerprint from before the answer shows after each trial that the state is unchanged. Its slots
//   are still proven, because captures move it like other regions.
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
    /// of device memory; nullopt: half of the free memory. not_recordable names a region that does not fit. Neighbours
    /// in `apart` lie in one allocation, in their order, at a distance that is a multiple of the first region's size;
    /// not_recordable if that is impossible. Work that uses the second region's start as the first region's end then
    /// reads canaries, not unmapped memory.
    [[nodiscard]] static Result<std::unique_ptr<TrialMemory>> create(std::shared_ptr<backends::Device> device,
                                                                     const Interface& interface, const Frame& frame,
                                                                     std::optional<std::uint64_t> most = std::nullopt,
                                                                     std::span<const Neighbours> apart = {});
    TrialMemory(const TrialMemory&) = delete;
    TrialMemory& operator=(const TrialMemory&) = delete;
    ~TrialMemory();

    /// The outputs' contents when a trial starts. Trials use `disturbed`, which differs everywhere from the call's
    /// contents: right results that are already there would prove nothing. Captures use `as_they_were`, because a
    /// capture may read page-locked host memory.
    enum class Outputs : std::uint8_t { as_they_were, disturbed };
    /// Restores the snapshot's contents. `placement` 0 or 1: two sets of addresses of the same alignment class.
    [[nodiscard]] Result<void> reset(std::size_t placement, Outputs outputs = Outputs::disturbed);
    /// Returns the memory of each region in the present placement; the caller's own memory for a region that is used in
    /// place.
    [[nodiscard]] const std::vector<MemoryRef>& regions() const noexcept { return m_regions; }
    [[nodiscard]] const std::vector<MemoryRef>& original() const noexcept { return m_original; }
    /// Whether a run's results are compared in this region: the function may write it.
    [[nodiscard]] bool is_writable(std::size_t region) const noexcept;

    /// Call this after a trial. verification_failed: a canary, or a copied read-only state, was overwritten.
    [[nodiscard]] Result<void> check_trial() const;
    /// Call this after a capture on memory from reset(placement, as_they_were). Fails with not_recordable, which names
    /// the region, if the callable wrote a region of page-locked host memory on the host.
    [[nodiscard]] Result<void> check_host_regions() const;
    /// Call this before the first trial. not_recordable: a read-only state of the caller is gone, or changed since the
    /// snapshot was taken.
    [[nodiscard]] Result<void> check_read_only() const;
    /// Call this after trials, for the memory used in place. verification_failed: this memory changed since the
    /// snapshot was taken.
    [[nodiscard]] Result<void> check_in_place() const;

    /// Gives the caller's own memory a trial's start contents, for a graph with fixed addresses.
    [[nodiscard]] Result<void> reset_original();
    /// Restores the snapshot's contents in the caller's own memory.
    [[nodiscard]] Result<void> write_back();

    /// A word of 8 bytes that lies in one of the windows, in a region that is not declared as floating point.
    struct Word {
        std::size_t region = 0;
        std::uint64_t offset = 0, value = 0;
    };
    /// Returns the words in the snapshot that lie in one of the windows. not_recordable: there are too many words to
    /// check.
    [[nodiscard]] Result<std::vector<Word>> words_in(std::span<const backends::AddressWindow> windows) const;

    /// Leaks all memory, because work that never ends still uses it.
    void abandon() noexcept { m_is_abandoned = true; }

private:
    enum class Kind : std::uint8_t { writable, read_only, in_place };
    struct Group { // tensors that overlap, directly or through others
        Kind kind = Kind::writable;
        MemoryRef original;           ///< the caller's memory, from the first to the last byte of the members
        MemoryRef snapshot;           ///< null if the caller's memory is used in place
        MemoryRef memory;             ///< fence, slack, contents, fence; null if the caller's memory is used in place
        backends::Fingerprint before; ///< fingerprint of memory that is used in place
        std::uint64_t start = 0;      ///< start of the contents in `memory`, for the present placement
        bool on_host = false;
        bool is_in_block = false; ///< whether `memory` is a part of one of m_blocks
        std::vector<std::size_t> members;
        [[nodiscard]] Address contents() const noexcept { return memory.address + start; }
    };
    TrialMemory(std::shared_ptr<backends::Device> device, const Interface& interface, const Frame& frame);
    [[nodiscard]] Group group_of(const Frame& frame, std::vector<std::size_t> members);
    [[nodiscard]] Result<void> add_groups(std::vector<Group> groups, std::uint64_t most);
    [[nodiscard]] Result<void> allocate_group(Group& group);
    [[nodiscard]] Result<void> put_apart(std::span<const Neighbours> all, std::uint64_t most);
    [[nodiscard]] Result<void> put_chain_apart(const std::vector<std::size_t>& chain, const std::string& why,
                                               std::uint64_t& left);
    [[nodiscard]] Result<void> disturb_outputs(const Group& group, const Address& contents);
    [[nodiscard]] Result<const Group*> changed(Kind kind) const;
    [[nodiscard]] const std::string& name(const Group& group) const noexcept;

    std::shared_ptr<backends::Device> m_device;
    const Interface& m_interface;
    std::vector<DType> m_types; ///< type of each region
    std::vector<Group> m_groups;
    std::vector<MemoryRef> m_blocks;      ///< memory of groups that were placed apart
    std::vector<std::uint8_t> m_writable; ///< for each region: whether the function may write it
    std::vector<MemoryRef> m_regions;
    std::vector<MemoryRef> m_original; ///< the caller's memory
    bool m_is_abandoned = false;
};

} // namespace warmgraph
