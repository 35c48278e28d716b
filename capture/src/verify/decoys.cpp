#include "verify/decoys.hpp"

#include <algorithm>
#include <cstring>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph {

namespace {

constexpr unsigned k_half_bits = 32;
constexpr std::uint64_t k_halves = 1ULL << k_half_bits; // bytes; in a range of this size each lower half occurs once
// The bytes at an address that are checked; they must not all be zero.
constexpr std::uint64_t k_looked_at = 4096;

} // namespace

std::uint32_t upper_half(const Bytes& param, const SuspectHalf& suspect)
{
    return load<std::uint32_t>(param, suspect.offset);
}

void set_upper_half(Bytes& param, const SuspectHalf& suspect, std::uint32_t value)
{
    std::memcpy(param.data() + suspect.offset, &value, sizeof value);
}

Decoys::~Decoys()
{
    for (const auto& [upper, range] : m_ranges)
        if (!range.owned.address.is_null()) m_device.release(range.owned);
}

Result<void> Decoys::add(const SuspectHalf& suspect, std::uint32_t upper)
{
    const auto [known, is_new] = m_ranges.try_emplace(upper);
    Range& range = known->second;
    const auto allocation = suspect.region.address.is_null() ? m_device.recording().allocation_at(suspect.address)
                                                             : std::optional{suspect.region};
    if (!allocation) return {}; // the memory was released meanwhile, so no kernel can use it
    const std::uint64_t from = allocation->address.flat(), to = from + allocation->size;
    range.from = range.to == 0 ? from : std::min(range.from, from);
    range.to = std::max(range.to, to);
    const MemoryRef behind{Address::from_flat(suspect.address), std::min(to - suspect.address, k_looked_at)};
    const auto other = m_device.bulk().first_other(behind, std::byte{0});
    if (!other) return std::unexpected(other.error());
    if (!*other)
        return fail(ErrorCode::not_recordable, "{} (zeros lie there, so that a test run cannot show a difference)",
                    suspect.why);
    return {};
}

Result<void> Decoys::reserve(Range& range) const
{
    if (range.to == 0) return {};
    const std::uint64_t size = range.to - range.from;
    auto owned = m_device.recording().reserve_decoy(size + k_halves);
    if (!owned) return within("reserve addresses for test runs", owned.error());
    range.owned = *owned;
    const std::uint64_t start = owned->address.flat();
    const std::uint64_t ahead = (range.from - start) % k_halves; // bytes to the next address with the same lower half
    range.decoy = {owned->address + ahead, size};
    range.shift = (start + ahead - range.from) >> k_half_bits;
    return m_device.bulk().fill(range.decoy, std::byte{0});
}

Result<void> Decoys::lay(std::span<const SuspectHalf> suspects, backends::RawGraph& graph)
{
    const auto param_of = [&](const SuspectHalf& suspect) -> Bytes& {
        return std::get<backends::RawKernel>(graph.nodes[suspect.node].work).params[suspect.param].value;
    };
    for (const SuspectHalf& suspect : suspects)
        if (auto added = add(suspect, upper_half(param_of(suspect), suspect)); !added) return added;
    for (auto& [upper, range] : m_ranges)
        if (auto reserved = reserve(range); !reserved) return reserved;
    for (const SuspectHalf& suspect : suspects) {
        Bytes& param = param_of(suspect);
        const std::uint32_t upper = upper_half(param, suspect);
        set_upper_half(param, suspect, upper + static_cast<std::uint32_t>(m_ranges.at(upper).shift));
    }
    return {};
}

Result<bool> Decoys::are_untouched() const
{
    for (const auto& [upper, range] : m_ranges) {
        if (range.decoy.size == 0) continue;
        const auto other = m_device.bulk().first_other(range.decoy, std::byte{0});
        if (!other) return std::unexpected(other.error());
        if (*other) return false;
    }
    return true;
}

} // namespace warmgraph
