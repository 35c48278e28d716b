// Part of FlatWords: decides about words that follow no region. Such a word is unused, a suspect for a trial, or the
// reason of a refusal.
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "classify/classify_words.hpp"
#include "classify/words.hpp"

namespace warmgraph {

std::optional<MemoryRef> FlatWords::allocation_at(std::uint64_t value)
{
    if (!m_captures.allocation_at) return std::nullopt;
    const auto [known, is_new] = m_allocations.try_emplace(value);
    if (is_new) known->second = m_captures.allocation_at(value);
    return known->second;
}

/// An address in memory of this graph is never free, whatever the caller reports: between the caller's two queries an
/// allocator may give away a block and get it back.
bool FlatWords::was_free(std::uint64_t value) const
{
    return is_within(m_first_free, value) &&
           std::ranges::none_of(m_regions, [value](const auto& region) { return region.contains(value); });
}

bool FlatWords::was_free_in_moved(std::uint64_t value) const
{
    return is_within(m_moved_free, value) && std::ranges::none_of(m_regions, [value](const MappedRegion& region) {
               return region.moved && value - region.moved->address.flat() <= region.moved->size;
           });
}

/// Whether the word lies in memory of the call in any capture, or in a live allocation that may have an owner.
bool FlatWords::lies_in_known_memory(std::uint64_t value)
{
    if (!may_be_pointer(value)) return false;
    // Excludes the address one past the end: such an address would follow its region, but this word follows no region.
    // Memory behind a region's end is another allocation.
    const auto holds_it = [value](const MappedRegion& region) {
        return region.contains_strictly(value) ||
               (region.moved && value - region.moved->address.flat() < region.moved->size);
    };
    if (std::ranges::any_of(m_regions, holds_it)) return true;
    return allocation_at(value) || (m_captures.other_memory_at && m_captures.other_memory_at(value));
}

bool FlatWords::lay_in_known_memory(std::uint64_t moved)
{
    if (!m_captures.foreign) return lies_in_known_memory(moved);
    const auto holds_it = [moved](const MappedRegion& region) {
        return region.moved && moved - region.moved->address.flat() < region.moved->size;
    };
    return may_be_pointer(moved) && (std::ranges::any_of(m_regions, holds_it) || is_within(m_foreign.live, moved));
}

bool FlatWords::was_host_only(std::uint64_t moved) const
{
    if (m_captures.foreign) return std::ranges::binary_search(m_foreign.host_words, moved);
    return m_captures.is_host_only && m_captures.is_host_only(moved);
}

/// Whether the word may be the address of a device function, a texture, or host memory that kernels can reach.
bool FlatWords::is_of_this_process(const WordPlace& place, std::uint64_t first) const
{
    if (!m_captures.foreign || first == 0) return false;
    const auto* const kernel = std::get_if<backends::RawKernel>(&place.graph.nodes[place.node].work);
    if (kernel != nullptr && kernel->module != nullptr && kernel->module->may_be_function(first)) return true;
    if (m_captures.is_handle && m_captures.is_handle(first)) return true;
    return m_foreign.is_readable_here && may_be_pointer(first) && m_foreign.is_readable_here(first);
}

/// Whether the word may be the distance between addresses in two regions: it changed by as much as this distance, and it
/// is such a distance in the first capture.
bool FlatWords::is_between_regions(std::uint64_t was, std::uint64_t is) const
{
    const auto may_be = [was](const MappedRegion& from, const MappedRegion& to) {
        // Distances in both directions are counted from the least one, from the end of `from` to the start of `to`.
        const std::uint64_t least = to.first.address.flat() - (from.first.address.flat() + from.first.size);
        return was - least <= from.first.size + to.first.size;
    };
    const std::uint64_t distance = is - was;
    if (distance == 0) return false;
    for (const MappedRegion& from : m_regions) {
        if (!m_deltas.contains(from.delta() + distance)) continue;
        const auto is_other = [&](const MappedRegion& to) {
            return to.delta() == from.delta() + distance && may_be(from, to);
        };
        if (std::ranges::any_of(m_regions, is_other)) return true;
    }
    return false;
}

bool FlatWords::is_no_address(std::uint64_t moved) const
{
    return moved >= k_highest || was_free_in_moved(moved) || was_host_only(moved);
}

/// The first capture runs unchanged, so its kernels use only addresses of live memory. A word that cannot be an address
/// in the second capture is not an address in the first capture either, because it has the same meaning in both
/// captures. Compilers align pointers to 8 bytes. At other multiples of 4, two adjacent halves count as an address only
/// if they form an address in both captures.
namespace {

/// Whether the word at `at` moved by a multiple of the distance, as an integer or as a floating-point number.
template <class Integer, class Real>
bool moved_by(ByteView first, ByteView moved, std::size_t at, std::int64_t distance)
{
    const auto was = load<Integer>(first, at), is = load<Integer>(moved, at);
    const auto difference = static_cast<std::int64_t>(static_cast<std::make_signed_t<Integer>>(is - was));
    const double real = static_cast<double>(std::bit_cast<Real>(is)) - static_cast<double>(std::bit_cast<Real>(was));
    return (difference != 0 && difference % distance == 0) ||
           (std::isfinite(real) && real != 0 && std::fmod(real, static_cast<double>(distance)) == 0);
}

} // namespace

bool FlatWords::is_of_number(ByteView first, ByteView moved, std::size_t byte) const
{
    const std::int64_t distance = m_captures.number_distance;
    if (distance == 0) return false;
    constexpr std::size_t k_half = sizeof(std::uint32_t);
    const std::size_t half = byte / k_half * k_half;
    if (half + k_half <= first.size() && moved_by<std::uint32_t, float>(first, moved, half, distance)) return true;
    // A word of 8 bytes may begin at this half, or at the one before.
    for (const std::size_t at : {half, half - k_half})
        if (at <= half && at + k_word <= first.size() && moved_by<std::uint64_t, double>(first, moved, at, distance))
            return true;
    return false;
}

Result<void> FlatWords::check_unused(const WordPlace& place, ByteView first, ByteView moved, std::size_t byte)
{
    if (is_of_number(first, moved, byte))
        return fail(ErrorCode::not_recordable,
                    "{} takes at {} a value that is made from a number of the program, which other calls have "
                    "otherwise: keep the number in device memory",
                    place.subject(), place.at(byte / sizeof(std::uint32_t) * sizeof(std::uint32_t)));
    constexpr std::size_t k_step = sizeof(std::uint32_t);
    const std::size_t from = byte >= k_word - 1 ? (byte - (k_word - 1) + k_step - 1) / k_step * k_step : 0;
    for (std::size_t at = from; at <= byte && at + k_word <= first.size(); at += k_step) {
        const auto was = load<std::uint64_t>(first, at), is = load<std::uint64_t>(moved, at);
        const bool is_address = !is_no_address(is) && !was_free(was) && lies_in_known_memory(was) &&
                                (at % k_word == 0 || lay_in_known_memory(is));
        const bool is_own = at % k_word == 0 && is_of_this_process(place, was);
        if (is_address) {
            auto refused = unexplained(place, first, moved, byte,
                                       fmt::format(", and the word at byte {} is the address of live memory", at));
            if (!add_stale(place, at, was, is, refused.error())) return refused;
        }
        if (is_own) return unexplained(place, first, moved, byte, ", and it is a handle of this process");
        if (is_between_regions(was, is))
            return unexplained(place, first, moved, byte,
                               fmt::format(", and the word at byte {} may be the distance between two regions", at));
    }
    return {};
}

bool FlatWords::can_be_tried(const WordPlace& place) const
{
    return m_captures.unused == UnusedWords::tried && m_captures.moved &&
           place.place.kind == backends::NodePlaceKind::parameter;
}

/// A pointer that is made from a region's address follows the region. This word lies in memory of the call in both
/// captures, yet follows nothing: it remains from a pointer to memory that the framework used for something else.
bool FlatWords::add_stale(const WordPlace& place, std::size_t offset, std::uint64_t was, std::uint64_t is,
                          const Error& why)
{
    if (!can_be_tried(place) || m_captures.foreign || offset % k_word != 0) return false;
    const auto was_in = std::ranges::find_if(m_regions, [was](const auto& one) { return one.contains_strictly(was); });
    const auto is_in = std::ranges::find_if(m_regions, [is](const MappedRegion& region) {
        return region.moved && is - region.moved->address.flat() < region.moved->size;
    });
    if (was_in == m_regions.end() || is_in == m_regions.end()) return false;
    const std::size_t upper = offset + sizeof(std::uint32_t);
    if (!is_suspect(place, upper))
        m_suspects.push_back({place.node, place.place.index, upper, was, why.message, was_in->first, true});
    return true;
}

/// Checks a word that is equal in both captures: it must not point into a live allocation. A word that points to memory
/// that was free in one of the captures is accepted, because the work cannot use it as an address.
Result<void> FlatWords::check_allocation(const WordPlace& place, std::size_t offset, std::uint64_t value)
{
    if (was_free(value) || was_free_in_moved(value)) return {};
    if (m_captures.other_memory_at)
        if (const auto where = m_captures.other_memory_at(value))
            return fail(ErrorCode::not_recordable,
                        "{}, {}: {:#x} lies in {}, which has other contents in another process. If it is a pointer: "
                        "{}. If it is a number: declare it as a scalar",
                        place.subject(), place.at(offset), value, *where, k_declare);
    const auto allocation = allocation_at(value);
    if (!allocation) return {};
    return fail(ErrorCode::not_recordable,
                "{}, {}: {:#x} lies in no declared region{}, inside an allocation of {} bytes. It is probably a "
                "pointer to undeclared memory: {}",
                place.subject(), place.at(offset), value, describe_other_memory(m_captures, Address::from_flat(value)),
                allocation->size, k_declare);
}

Result<void> FlatWords::check_allocation(const WordPlace& place, std::size_t offset, std::uint64_t value,
                                         std::size_t upper)
{
    auto checked = check_allocation(place, offset, value);
    // Only a word that is unlikely to be a pointer is tried as a number. Either the low half is small: as a pointer
    // the word would point to the first bytes of memory that begins at a multiple of 4 GiB. Or other bytes are between
    // the halves, which compilers never do.
    const bool is_torn = upper != offset + sizeof(std::uint32_t);
    const bool is_like_number = static_cast<std::uint32_t>(value) < k_small_number;
    if (checked || !can_be_tried(place) || !(is_torn || is_like_number) || !allocation_at(value)) return checked;
    m_suspects.push_back({place.node, place.place.index, upper, value, checked.error().message});
    return {};
}

} // namespace warmgraph
