// Helpers for words of 8 bytes and their halves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

#include "warmgraph/backends/address.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph {

inline constexpr std::size_t k_word = sizeof(std::uint64_t);
// All device pointers are in this range: the first MiB is never mapped, and addresses have at most 57 bits.
inline constexpr std::uint64_t k_lowest = 1ULL << 20, k_highest = 1ULL << 57;

inline constexpr std::uint32_t k_small_number = 1U << 16U; ///< halves below this are more likely numbers than addresses
/// The cure for a pointer to undeclared memory, in messages.
inline constexpr std::string_view k_declare = "declare the memory (Spec) and ask Recorder::address for it, or use "
                                              "Recorder::alloc (for an adopted graph: list it as scratch)";

[[nodiscard]] inline bool may_be_pointer(std::uint64_t word) noexcept { return word >= k_lowest && word < k_highest; }

[[nodiscard]] inline bool overlaps(std::span<const cachefmt::Slot> slots, std::size_t offset) noexcept
{
    return std::ranges::any_of(slots, [offset](const cachefmt::Slot& slot) {
        return slot.offset < offset + k_word && offset < slot.offset + slot.width;
    });
}

[[nodiscard]] inline bool overlaps_half(std::span<const cachefmt::Slot> slots, std::size_t offset) noexcept
{
    return std::ranges::any_of(slots, [offset](const cachefmt::Slot& slot) {
        return slot.offset < offset + sizeof(std::uint32_t) && offset < slot.offset + slot.width;
    });
}

/// Whether one of `bytes` (in ascending order) is in the `width` bytes from `offset`.
[[nodiscard]] inline bool holds_any(std::span<const std::size_t> bytes, std::size_t offset, std::size_t width) noexcept
{
    const auto next = std::ranges::lower_bound(bytes, offset);
    return next != bytes.end() && *next < offset + width;
}

/// Whether a block contains the address. `blocks` must be sorted by address and must not overlap.
[[nodiscard]] inline bool is_within(std::span<const MemoryRef> blocks, std::uint64_t flat) noexcept
{
    const auto start = [](const MemoryRef& block) { return block.address.flat(); };
    const auto after = std::ranges::upper_bound(blocks, flat, {}, start);
    return after != blocks.begin() && flat - start(*std::prev(after)) < std::prev(after)->size;
}

} // namespace warmgraph
