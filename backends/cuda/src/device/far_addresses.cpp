#include "device/far_addresses.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

namespace warmgraph::backends::cuda {
namespace {

constexpr std::uint64_t k_slot = 8ULL << 30; ///< bytes: two values of an address's upper 32 bits
/// Starts above 2^44, because AddressSanitizer's shadow ends 2 GiB above 2^44.
constexpr std::uint64_t k_first_slot = (1ULL << 44) / k_slot + 1, k_end_slot = (1ULL << 46) / k_slot;
constexpr std::uint64_t k_offsets = 1021; ///< a prime, so that the offsets repeat late
constexpr std::uint64_t k_least_unit = 2ULL << 20;

struct Slots {
    std::mutex mutex;                             // guards the members below
    std::map<std::uint64_t, std::uint64_t> taken; // for each place: its first slot, and its number of slots
    std::uint64_t next = k_first_slot;
    std::uint64_t count = 0; // places taken so far
};

Slots& slots()
{
    // Never destroyed: devices that are closed at the end of the process return their places.
    static Slots* const s_slots = new Slots; // NOLINT(cppcoreguidelines-owning-memory)
    return *s_slots;
}

/// Finds `wanted` free slots in a row at or after `from`; returns the first.
std::optional<std::uint64_t> find_free(const Slots& all, std::uint64_t from, std::uint64_t wanted)
{
    std::uint64_t at = from;
    auto next = all.taken.lower_bound(from);
    if (next != all.taken.begin()) {
        const auto& [first, length] = *std::prev(next);
        at = std::max(at, first + length);
    }
    for (; next != all.taken.end() && next->first < at + wanted; ++next) at = next->first + next->second;
    return at + wanted <= k_end_slot ? std::optional(at) : std::nullopt;
}

} // namespace

std::optional<FarPlace> FarPlace::take(std::uint64_t size, std::uint64_t unit)
{
    if (size > (k_end_slot - k_first_slot) * k_slot) return std::nullopt;
    Slots& all = slots();
    const std::scoped_lock lock(all.mutex);
    const std::uint64_t k = all.count++ % k_offsets;
    const std::uint64_t offset = k * (k + 1) / 2 % k_offsets * std::max(unit, k_least_unit);
    const std::uint64_t wanted = (offset + size + k_slot - 1) / k_slot;
    auto slot = find_free(all, all.next, wanted);
    if (!slot) slot = find_free(all, k_first_slot, wanted);
    if (!slot) return std::nullopt;
    all.taken.emplace(*slot, wanted);
    all.next = *slot + wanted;
    return FarPlace(*slot, *slot * k_slot + offset);
}

FarPlace::FarPlace(FarPlace&& other) noexcept : m_slot(other.m_slot), m_start(std::exchange(other.m_start, 0)) {}

FarPlace& FarPlace::operator=(FarPlace&& other) noexcept
{
    std::swap(m_slot, other.m_slot);
    std::swap(m_start, other.m_start);
    return *this;
}

FarPlace::~FarPlace()
{
    if (m_start == 0) return;
    Slots& all = slots();
    const std::scoped_lock lock(all.mutex);
    all.taken.erase(m_slot);
}

} // namespace warmgraph::backends::cuda
