#include "verify/trial_conditions.hpp"

#include <algorithm>
#include <set>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph {

namespace {

/// A window has 2^40 bytes. Drivers give addresses near each other, so words are checked that differ from a known
/// address only in the lower 40 bits.
constexpr unsigned k_window_bits = 40;
/// The lowest address that is searched for, unless a known address is lower.
constexpr std::uint64_t k_lowest_address = 4ULL << 30;

} // namespace

std::vector<backends::AddressWindow> windows_around(std::span<const MemoryRef> regions)
{
    std::set<std::uint64_t> tops;
    std::uint64_t lowest = k_lowest_address;
    for (const MemoryRef& region : regions) {
        if (region.size == 0) continue;
        lowest = std::min(lowest, region.address.flat());
        tops.insert(region.address.flat() >> k_window_bits);
        tops.insert((region.address.flat() + region.size) >> k_window_bits);
    }
    std::vector<backends::AddressWindow> windows;
    for (const std::uint64_t top : tops) windows.push_back({top << k_window_bits, (top + 1) << k_window_bits});
    // The lowest window contains reserved ranges (cuMemAddressReserve: 0x302000000), but also zero and all small
    // numbers.
    if (!windows.empty() && windows[0].from == 0) windows[0].from = std::min(lowest, k_lowest_address);
    return windows;
}

Result<void> check_no_managed(const CaptureTarget& target, std::span<const MemoryRef> regions)
{
    for (std::size_t i = 0; i < regions.size(); ++i)
        if (target.device->recording().is_managed(regions[i].address))
            return fail(ErrorCode::not_recordable,
                        "'{}' is managed memory, which the callable may read and write on the host unnoticed: pass "
                        "device memory (Device::allocate) or page-locked memory (Device::allocate_host)",
                        target.interface.regions[i].name);
    return {};
}

Result<void> check_tables(const CaptureTarget& target, const TrialMemory& memory)
{
    if (!target.device->limits().flat_addresses) return {};
    const auto windows = windows_around(memory.original());
    const auto words = memory.words_in(windows);
    if (!words) return std::unexpected(words.error());
    for (const auto& word : *words) {
        const auto allocation = target.device->recording().allocation_at(word.value);
        const auto& regions = memory.original();
        const auto in = std::ranges::find_if(
            regions, [&](const MemoryRef& region) { return word.value - region.address.flat() < region.size; });
        if (!allocation && in == regions.end()) continue;
        const std::string whose =
            in != regions.end()
                ? fmt::format("'{}'", target.interface.regions[static_cast<std::size_t>(in - regions.begin())].name)
                : fmt::format("an allocation of {} bytes", allocation->size);
        return fail(ErrorCode::not_recordable,
                    "'{}' holds at byte {} the address {:#x}, which lies in {}, and a replay cannot follow addresses "
                    "in memory: pass pointers as kernel parameters. If it is a number: declare the region with its "
                    "type, or with no_addresses",
                    target.interface.regions[word.region].name, word.offset, word.value, whose);
    }
    return {};
}

Result<void> check_no_collectives(const backends::RawGraph& graph)
{
    if (!backends::has_collectives(graph)) return {};
    return fail(
        ErrorCode::not_recordable,
        "it launches an NCCL collective, which waits for other ranks: leave the collective outside the function");
}

} // namespace warmgraph
