#include "device/shadow.hpp"

#include <algorithm>
#include <bit>

#include "device/physical_memory.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {
namespace {

constexpr std::uint64_t k_mappings = 64; ///< usual number in one shadow; each mapping takes 25 us (measured)
constexpr std::uint64_t k_largest_chunk = 256ULL << 20; ///< bytes
constexpr std::uint64_t k_guards = 7;                   ///< different sizes of the guard, in granules
constexpr std::uint64_t k_field_slot = 8ULL << 30;      ///< bytes: two values of an address's upper 32 bits
constexpr std::uint64_t k_field_offsets = 1021;         ///< a prime, so that the offsets repeat late

} // namespace

struct Shadows::Chunk {
    Chunk(Core& made_on, CUmemGenericAllocationHandle made, std::uint64_t bytes) noexcept
        : core(&made_on), handle(made), size(bytes)
    {
        core->tally.add(size);
    }
    Chunk(const Chunk&) = delete;
    Chunk& operator=(const Chunk&) = delete;
    ~Chunk()
    {
        core->tally.remove(size);
        const Driver& driver = *core->driver;
        if (auto released = driver.call("cuMemRelease", driver.cuMemRelease, handle); !released)
            log().warn("cannot free {} bytes of memory for captures: {}", size, released.error().message);
    }

    Core* core;
    CUmemGenericAllocationHandle handle;
    std::uint64_t size;
};

Shadows::~Shadows()
{
    for (const auto& [start, shadow] : m_shadows) {
        if (auto undone = undo(start, shadow); !undone)
            log().warn("addresses for captures at {:#x}: {}", start, undone.error().message);
    }
    if (!m_field || m_field->size == 0) return;
    const CurrentContext context(m_core);
    const Driver& driver = *m_core.driver;
    auto freed = driver.call("cuMemAddressFree", driver.cuMemAddressFree, CUdeviceptr{m_field->start}, m_field->size);
    if (!freed) log().warn("cannot free the addresses for captures: {}", freed.error().message);
}

Result<std::uint64_t> Shadows::granularity()
{
    if (m_granularity != 0) return m_granularity;
    const Driver& driver = *m_core.driver;
    const CUmemAllocationProp wanted = device_memory(m_core);
    std::size_t unit = 0;
    auto asked = driver.call("cuMemGetAllocationGranularity", driver.cuMemGetAllocationGranularity, &unit, &wanted,
                             CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (!asked) return std::unexpected(asked.error());
    return m_granularity = std::max<std::uint64_t>(unit, 4096);
}

Result<std::shared_ptr<const Shadows::Chunk>> Shadows::make_chunk(std::uint64_t size)
{
    const Driver& driver = *m_core.driver;
    const CUmemAllocationProp wanted = device_memory(m_core);
    CUmemGenericAllocationHandle handle = 0;
    auto made = driver.call("cuMemCreate", driver.cuMemCreate, &handle, size, &wanted, 0ULL);
    if (!made) return std::unexpected(made.error());
    return std::make_shared<const Chunk>(m_core, handle, size);
}

Result<std::shared_ptr<const Shadows::Chunk>> Shadows::chunk_for(std::uint64_t size)
{
    const auto unit = granularity();
    if (!unit) return std::unexpected(unit.error());
    std::uint64_t wanted =
        round_up(std::min(std::bit_floor(std::max(size / k_mappings, *unit)), k_largest_chunk), *unit);
    for (;; wanted = round_up(wanted / 2, *unit)) {
        if (auto known = m_chunks[wanted].lock()) return known;
        auto made = make_chunk(wanted);
        if (made) {
            m_chunks[wanted] = *made;
            if (wanted == *unit) m_smallest = *made;
            return made;
        }
        // A full device may still have one piece of the smallest size.
        if (wanted == *unit || made.error().code != ErrorCode::out_of_memory) return made;
    }
}

Result<std::uint64_t> Shadows::reserve_range(Shadow& shadow)
{
    const Driver& driver = *m_core.driver;
    CUdeviceptr start = 0;
    for (int wish = 0; wish < k_wishes && !m_field; ++wish) {
        shadow.place = FarPlace::take(shadow.reserved, m_granularity);
        if (!shadow.place) break;
        const CUresult status =
            driver.status("cuMemAddressReserve", driver.cuMemAddressReserve, &start, shadow.reserved, std::size_t{0},
                          CUdeviceptr{shadow.place->start()}, 0ULL);
        const bool is_reserved = status == CUDA_SUCCESS && start != 0;
        if (is_reserved && start == shadow.place->start()) return std::uint64_t{start};
        // The driver chose another address: the requested one is only a hint.
        if (is_reserved)
            static_cast<void>(driver.status("cuMemAddressFree", driver.cuMemAddressFree, start, shadow.reserved));
        shadow.place.reset();
    }
    if (const auto place = take_of_field(shadow)) return *place;
    auto reserved = driver.call("cuMemAddressReserve", driver.cuMemAddressReserve, &start, shadow.reserved,
                                std::size_t{0}, CUdeviceptr{0}, 0ULL);
    if (!reserved) return std::unexpected(reserved.error());
    return std::uint64_t{start};
}

/// Reserves one large range and cuts it into slots of 8 GiB, because driver 580 on an H200 follows few address requests
/// (14 of 50). Nothing else has addresses in it.
Shadows::Field Shadows::reserve_field() const
{
    const Driver& driver = *m_core.driver;
    for (const std::uint64_t slots : {1024ULL, 128ULL, 16ULL}) {
        CUdeviceptr start = 0;
        const std::uint64_t size = (slots + 1) * k_field_slot;
        const CUresult status = driver.status("cuMemAddressReserve", driver.cuMemAddressReserve, &start, size,
                                              std::size_t{0}, CUdeviceptr{0}, 0ULL);
        if (status == CUDA_SUCCESS && start != 0) return {start, size, round_up(start, k_field_slot), slots, {}};
    }
    return {};
}

std::optional<std::uint64_t> Shadows::take_of_field(Shadow& shadow)
{
    if (!m_field) m_field = reserve_field();
    // Varying offsets, so that all distances between shadows differ.
    const std::uint64_t offset = m_count * (m_count + 1) / 2 % k_field_offsets * m_granularity;
    const std::uint64_t wanted = (offset + shadow.reserved + k_field_slot - 1) / k_field_slot;
    for (std::uint64_t first = 0; first + wanted <= m_field->slots; ++first) {
        const auto end = m_field->taken.lower_bound(first + wanted);
        if (m_field->taken.lower_bound(first) != end) continue;
        for (std::uint64_t slot = first; slot < first + wanted; ++slot) m_field->taken.insert(slot);
        shadow.slots = {first, first + wanted};
        return m_field->first + first * k_field_slot + offset;
    }
    return std::nullopt;
}

Result<void> Shadows::map(std::uint64_t start, Shadow& shadow, std::uint64_t size)
{
    const Driver& driver = *m_core.driver;
    for (; shadow.mapped < size; shadow.mapped += shadow.chunk->size) {
        auto mapped = driver.call("cuMemMap", driver.cuMemMap, CUdeviceptr{start + shadow.mapped}, shadow.chunk->size,
                                  std::size_t{0}, shadow.chunk->handle, 0ULL);
        if (!mapped) return mapped;
    }
    return allow_access(m_core, start, shadow.mapped);
}

Result<void> Shadows::undo(std::uint64_t start, const Shadow& shadow)
{
    const CurrentContext context(m_core);
    const Driver& driver = *m_core.driver;
    Result<void> first;
    const auto note = [&](Result<void> done) {
        if (first && !done) first = std::move(done);
    };
    for (std::uint64_t at = 0; at < shadow.mapped; at += shadow.chunk->size)
        note(driver.call("cuMemUnmap", driver.cuMemUnmap, CUdeviceptr{start + at}, shadow.chunk->size));
    if (shadow.slots.first == shadow.slots.second)
        note(driver.call("cuMemAddressFree", driver.cuMemAddressFree, CUdeviceptr{start}, shadow.reserved));
    for (std::uint64_t slot = shadow.slots.first; slot < shadow.slots.second; ++slot) m_field->taken.erase(slot);
    return first;
}

Result<std::uint64_t> Shadows::reserve(std::uint64_t size)
{
    if (size > 1ULL << 48) // the width of a device address
        return fail(ErrorCode::out_of_memory, "{} bytes are more than the address space", size);
    const std::scoped_lock lock(m_mutex);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    auto chunk = chunk_for(size);
    if (!chunk) return std::unexpected(chunk.error());
    Shadow shadow;
    shadow.chunk = std::move(*chunk);
    const std::uint64_t mapped = round_up(size, shadow.chunk->size);
    shadow.reserved = mapped + (1 + m_count++ % k_guards) * m_granularity;
    const auto start = reserve_range(shadow);
    if (!start) return start;
    if (auto done = map(*start, shadow, mapped); !done) {
        static_cast<void>(undo(*start, shadow)); // NOLINT(bugprone-unused-return-value): the first failure says more
        return std::unexpected(done.error());
    }
    m_shadows.emplace(*start, std::move(shadow));
    return start;
}

Result<void> Shadows::release(std::uint64_t start)
{
    const std::scoped_lock lock(m_mutex);
    const auto found = m_shadows.find(start);
    if (found == m_shadows.end())
        return fail(ErrorCode::not_found, "no address range for captures starts at {:#x}", start);
    const Shadow shadow = std::move(found->second);
    m_shadows.erase(found);
    return undo(start, shadow);
}

} // namespace warmgraph::backends::cuda
