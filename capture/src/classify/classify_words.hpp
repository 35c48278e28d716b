// The words of by-value parameters on devices with flat addresses, where any word may be a pointer: finds the words
// that follow a region and the words that stay. differential_capture.md argues why this is right.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "classify/region_map.hpp"
#include "warmgraph/backends/node_places.hpp"

namespace warmgraph {

/// How a pointer is used. `bytes`: the node reads or writes at the pointer, so it does not point to its region's end,
/// where the next region may begin.
enum class Pointee : std::uint8_t { unknown, bytes };

/// The place of some bytes in a captured graph.
struct WordPlace {
    const backends::RawGraph& graph;
    std::size_t node = 0;
    backends::NodePlace place;
    Pointee pointee = Pointee::unknown;
    /// Returns a text such as "kernel rope (node 3)".
    [[nodiscard]] std::string subject() const;
    /// Returns a text such as "parameter 2", "attribute 4" (the attribute's id), "parameter buffer" or "its source".
    [[nodiscard]] std::string name() const;
    /// Returns a text such as "parameter 2 byte 16", "parameter buffer byte 16" or "its source".
    [[nodiscard]] std::string at(std::size_t offset) const;
};

class FlatWords {
public:
    FlatWords(const Interface& interface, const Captures& captures);

    /// Returns the slots of the words that follow regions, by offset. `moved`: the same bytes in the other capture, if
    /// there is one. `scalars`: slots that are already known. not_recordable: a word would be wrong in a replay.
    /// `unused`: receives the offsets of bytes that may never have been written; null if such bytes are impossible.
    [[nodiscard]] Result<std::vector<cachefmt::Slot>> slots(const WordPlace& place, ByteView first,
                                                            std::optional<ByteView> moved,
                                                            std::span<const cachefmt::Slot> scalars,
                                                            std::vector<std::size_t>* unused = nullptr);
    /// Checks that no word of a parameter outside `slots` is an object's handle or a device function's address, because
    /// these differ in other processes. Handles and addresses are aligned words of 8 bytes.
    [[nodiscard]] Result<void> check_handles(const WordPlace& place, ByteView value,
                                             std::span<const cachefmt::Slot> slots) const;
    /// Returns the slot for the operand of a copy or fill. The operand is always an address and must lie in its region.
    [[nodiscard]] Result<cachefmt::Slot> address(const WordPlace& place, const Address& first,
                                                 const std::optional<Address>& moved);
    [[nodiscard]] std::vector<SuspectHalf> take_suspects() noexcept { return std::move(m_suspects); }
    [[nodiscard]] std::vector<Neighbours> take_neighbours() noexcept { return std::move(m_neighbours); }
    /// Returns how many words so far count as addresses only by their range.
    [[nodiscard]] std::uint32_t unproven() const noexcept { return m_unproven; }

private:
    using Candidates = std::vector<std::uint32_t>; ///< indices of regions
    struct Word {
        std::uint64_t first = 0, moved = 0;
    };
    struct Window {
        std::size_t offset = 0;
        Candidates candidates;
    };
    /// Whether pointers must lie in their region, or may lie before or behind it.
    enum class Reach : std::uint8_t { inside, outside };

    [[nodiscard]] Candidates movers(const WordPlace& place, const Word& word, Reach reach) const;
    struct Choice {
        cachefmt::Slot slot;
        bool is_certain = true;
    };
    [[nodiscard]] Result<Choice> choose(const WordPlace& place, std::size_t offset, std::uint64_t value,
                                        Candidates candidates);
    /// Notes, only once, that the region and a candidate may be neighbours. Returns false if no trial can check it.
    [[nodiscard]] bool note_neighbours(std::uint32_t start, std::span<const std::uint32_t> candidates,
                                       const std::string& why);
    [[nodiscard]] bool is_start_of(std::uint32_t region, std::span<const std::uint32_t> candidates,
                                   std::size_t node) const;
    [[nodiscard]] bool uses(std::size_t node, std::uint32_t region) const;
    [[nodiscard]] cachefmt::Slot slot(std::uint32_t region, std::size_t offset, std::uint64_t value) const;
    /// Returns the pointer that contains the differing byte; nullopt if no region explains the byte.
    [[nodiscard]] Result<std::optional<Window>> window(const WordPlace& place, ByteView first, ByteView moved,
                                                       std::size_t byte, std::span<const cachefmt::Slot> taken) const;
    [[nodiscard]] Result<std::optional<cachefmt::Slot>> unmoved_slot(const WordPlace& place, std::size_t offset,
                                                                     std::uint64_t value);
    [[nodiscard]] Result<void> moving(const WordPlace& place, ByteView first, ByteView moved,
                                      std::span<const cachefmt::Slot> scalars, std::vector<cachefmt::Slot>& found,
                                      std::vector<std::size_t>* unused);
    /// Whether the address lies in CapturedGraph::free_blocks.
    [[nodiscard]] bool was_free(std::uint64_t value) const;
    [[nodiscard]] bool was_free_in_moved(std::uint64_t value) const;
    [[nodiscard]] bool lies_in_known_memory(std::uint64_t value);
    [[nodiscard]] bool is_between_regions(std::uint64_t was, std::uint64_t is) const;
    /// Whether a word with this byte moved as numbers of the caller's program did (Captures::number_distance).
    [[nodiscard]] bool is_of_number(ByteView first, ByteView moved, std::size_t byte) const;
    /// Checks that a byte which differs between captures for no known reason may become zero: no word around it is the
    /// address of live memory in the first capture, and no word around it may be the distance between two regions. A
    /// word that lies in memory of the call in both captures and does not follow it becomes a suspect.
    [[nodiscard]] Result<void> check_unused(const WordPlace& place, ByteView first, ByteView moved, std::size_t byte);
    /// Checks that no two separate halves form a pointer that follows a region.
    [[nodiscard]] Result<void> check_unused_halves(const WordPlace& place, ByteView first, ByteView moved,
                                                   std::span<const cachefmt::Slot> found,
                                                   std::span<const std::size_t> unused);
    enum class CaptureSide : std::uint8_t { first, moved }; ///< the capture that the word comes from
    [[nodiscard]] bool is_of_whole_address(ByteView value, std::size_t half, CaptureSide of);
    /// As lies_in_known_memory(), for a word of the moved capture, which may come from another process.
    [[nodiscard]] bool lay_in_known_memory(std::uint64_t moved);
    [[nodiscard]] bool was_host_only(std::uint64_t moved) const;
    /// For another process's capture: whether the word may be the address of an object that kernels of the first
    /// capture use and that lies in no allocation.
    [[nodiscard]] bool is_of_this_process(const WordPlace& place, std::uint64_t first) const;
    /// For another process's capture: checks that a word which stays does not point outside a region that stayed too.
    [[nodiscard]] Result<void> check_unmoved(const WordPlace& place, std::size_t offset, std::uint64_t value) const;
    /// Whether a word of the moved capture cannot be an address that its kernels use.
    [[nodiscard]] bool is_no_address(std::uint64_t moved) const;
    [[nodiscard]] Result<void> check_allocation(const WordPlace& place, std::size_t offset, std::uint64_t value);
    /// Checks in the same way a word whose upper half is at `upper`. If a run can decide whether that half is part of a
    /// pointer, the half becomes a suspect and is not refused.
    [[nodiscard]] Result<void> check_allocation(const WordPlace& place, std::size_t offset, std::uint64_t value,
                                                std::size_t upper);
    [[nodiscard]] bool is_suspect(const WordPlace& place, std::size_t upper) const;
    /// Whether runs may decide about words of this place.
    [[nodiscard]] bool can_be_tried(const WordPlace& place) const;
    /// Makes a suspect of a word that lies in memory of the call in both captures. False: it does not.
    [[nodiscard]] bool add_stale(const WordPlace& place, std::size_t offset, std::uint64_t was, std::uint64_t is,
                                 const Error& why);
    [[nodiscard]] std::optional<MemoryRef> allocation_at(std::uint64_t value);
    [[nodiscard]] std::string describe_address(std::uint64_t value) const;
    /// `suspicion`: the reason why the word must not become zero, as the end of a sentence; "" if it is refused anyway.
    [[nodiscard]] std::unexpected<Error> unexplained(const WordPlace& place, ByteView first, ByteView moved,
                                                     std::size_t byte, std::string_view suspicion) const;
    [[nodiscard]] std::unexpected<Error> beside(const WordPlace& place, ByteView first, const Window& pointer) const;

    /// Checks that no two halves in `value` form a pointer to live undeclared memory. `without`: offsets of bytes that
    /// belong to no word.
    [[nodiscard]] Result<void> check_halves(const WordPlace& place, ByteView value,
                                            std::span<const cachefmt::Slot> found,
                                            std::span<const std::size_t> without);
    [[nodiscard]] bool is_near(const MappedRegion& region, std::uint64_t flat) const noexcept;

    const Captures& m_captures;
    std::vector<MappedRegion> m_regions;
    std::unordered_set<std::uint64_t> m_deltas;        ///< the distances that regions moved
    std::vector<MemoryRef> m_first_free, m_moved_free; ///< as CapturedGraph::free_blocks, sorted by address
    std::uint64_t m_reach = 0;                         ///< sum of the regions' sizes, in bytes
    std::unordered_map<std::uint64_t, std::optional<MemoryRef>> m_allocations; ///< the device's reply for each word
    std::uint32_t m_unproven = 0;
    std::vector<SuspectHalf> m_suspects;
    std::vector<Neighbours> m_neighbours;
    ForeignMemory m_foreign; ///< as Captures::foreign, sorted by address
};

} // namespace warmgraph
