// Part of FlatWords: finds pointers that are passed in two halves.
#include <algorithm>

#include "classify/classify_words.hpp"
#include "classify/words.hpp"

namespace warmgraph {

using cachefmt::Slot;

/// Whether the aligned word around a half is an address by itself, even a stale address or a host address. If so, the
/// half belongs to that word and not to a pointer in two parts.
bool FlatWords::is_of_whole_address(ByteView value, std::size_t half, CaptureSide of)
{
    const std::size_t at = half / k_word * k_word;
    if (at + k_word > value.size()) return false;
    const auto word = load<std::uint64_t>(value, at);
    if (!may_be_pointer(word)) return false;
    if (m_captures.foreign && of == CaptureSide::moved)
        return lay_in_known_memory(word) || is_within(m_moved_free, word) || was_host_only(word);
    return lies_in_known_memory(word) || is_within(m_first_free, word) ||
           (!m_captures.foreign && is_within(m_moved_free, word)) ||
           (m_captures.is_host_only && m_captures.is_host_only(word));
}

Result<void> FlatWords::check_unused_halves(const WordPlace& place, ByteView first, ByteView moved,
                                            std::span<const Slot> found, std::span<const std::size_t> unused)
{
    constexpr std::size_t k_half = sizeof(std::uint32_t);
    const auto whole = [](ByteView value, std::size_t high, std::size_t low) {
        return std::uint64_t{load<std::uint32_t>(value, high)} << 32U | load<std::uint32_t>(value, low);
    };
    std::size_t last = first.size(); // the half that was checked last
    for (const std::size_t byte : unused) {
        const std::size_t low = byte / k_half * k_half;
        if (low == last || low + k_half > first.size()) continue;
        last = low;
        for (std::size_t high = 0; high + k_half <= first.size(); high += k_half) {
            const std::uint64_t was = whole(first, high, low), is = whole(moved, high, low);
            if (high == low || is == was || !m_deltas.contains(is - was)) continue;
            if (overlaps_half(found, high)) continue; // the half is part of a whole pointer
            // Last, because the driver may have to be asked.
            if (is_of_whole_address(first, high, CaptureSide::first) &&
                is_of_whole_address(moved, high, CaptureSide::moved))
                continue;
            const auto follows = [&](const MappedRegion& region) {
                return is - was == region.delta() && region.contains(was);
            };
            if (std::ranges::any_of(m_regions, follows))
                return unexplained(
                    place, first, moved, byte,
                    fmt::format(", but with the half at byte {} it makes an address that follows a region", high));
        }
    }
    return {};
}

/// Whether this upper half is already a suspect. One trial is enough for an upper half, whichever lower half it is
/// combined with.
bool FlatWords::is_suspect(const WordPlace& place, std::size_t upper) const
{
    return std::ranges::any_of(m_suspects, [&](const SuspectHalf& suspect) {
        const backends::NodePlace param{backends::NodePlaceKind::parameter, static_cast<std::uint32_t>(suspect.param)};
        return suspect.node == place.node && place.place == param && suspect.offset == upper;
    });
}

/// Refuses pointers to live undeclared memory that are passed in two halves with other bytes between them. The upper
/// half of such a pointer resembles the regions' upper halves, because drivers give addresses near each other. So each
/// similar half is combined with every lower half.
Result<void> FlatWords::check_halves(const WordPlace& place, ByteView value, std::span<const Slot> found,
                                     std::span<const std::size_t> without)
{
    constexpr std::size_t k_half = sizeof(std::uint32_t);
    constexpr unsigned k_near = 8; // number of low bits in which an upper half may differ from a region's upper half
    const auto is_near_regions = [&](std::uint64_t upper) {
        return upper != 0 && std::ranges::any_of(m_regions, [&](const MappedRegion& region) {
                   return region.first.address.flat() >> (32U + k_near) == upper >> k_near;
               });
    };
    for (std::size_t high = 0; high + k_half <= value.size(); high += k_half) {
        const std::uint64_t upper = load<std::uint32_t>(value, high);
        if (overlaps_half(found, high) || holds_any(without, high, k_half) || !is_near_regions(upper)) continue;
        if (is_of_whole_address(value, high, CaptureSide::first) || is_suspect(place, high)) continue;
        for (std::size_t low = 0; low + k_half <= value.size(); low += k_half) {
            if (low == high || overlaps_half(found, low) || holds_any(without, low, k_half)) continue;
            if (is_of_whole_address(value, low, CaptureSide::first)) continue;
            const std::uint64_t flat = upper << 32U | load<std::uint32_t>(value, low);
            if (auto checked = check_allocation(place, low, flat, high); !checked) return checked;
            if (is_suspect(place, high)) break;
        }
    }
    return {};
}

} // namespace warmgraph
