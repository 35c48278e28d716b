#include "device/memory.hpp"

#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {
namespace {

/// True if the driver's range contains one of our ranges: the other bytes of the driver's range are then padding.
template <class Range>
bool overlaps(const Range& ours, const Range& range)
{
    return range.start < ours.start + ours.size && ours.start < range.start + range.size;
}

} // namespace

Result<void> transfer(const Core& core, CUdeviceptr to, CUdeviceptr from, std::uint64_t size)
{
    const CurrentContext context(core);
    const OutsideCapture outside(core);
    const Driver& driver = *core.driver;
    auto copied = driver.call("cuMemcpyAsync", driver.cuMemcpyAsync, to, from, size, core.transfers);
    if (!copied) return copied;
    return driver.call("cuStreamSynchronize", driver.cuStreamSynchronize, core.transfers);
}

Memory::~Memory()
{
    for (const auto& [start, allocation] : m_allocations) free(start, allocation);
}

MemoryRef Memory::insert(std::uint64_t start, std::uint64_t size, Kind kind)
{
    const std::scoped_lock lock(m_mutex);
    m_allocations[start] = {size, kind};
    return {Address::from_flat(start), size};
}

Result<MemoryRef> Memory::allocate(std::uint64_t size)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot allocate 0 bytes");
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    CUdeviceptr start = 0;
    auto allocated = m_core.driver->call("cuMemAlloc", m_core.driver->cuMemAlloc, &start, size);
    if (!allocated) return within(fmt::format("cannot allocate {} bytes", size), allocated.error());
    m_core.tally.add(size);
    return insert(start, size, Kind::device);
}

Result<MemoryRef> Memory::allocate_host(std::uint64_t size)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot allocate 0 bytes of host memory");
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    void* start = nullptr;
    constexpr unsigned k_flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    auto allocated = m_core.driver->call("cuMemHostAlloc", m_core.driver->cuMemHostAlloc, &start, size, k_flags);
    if (!allocated)
        return within(fmt::format("cannot allocate {} bytes of page-locked host memory", size), allocated.error());
    return insert(reinterpret_cast<std::uintptr_t>(start), size, Kind::host);
}

Result<MemoryRef> Memory::reserve_shadow(std::uint64_t size) { return reserve(size, Kind::shadow); }
Result<MemoryRef> Memory::reserve_decoy(std::uint64_t size) { return reserve(size, Kind::decoy); }

Result<MemoryRef> Memory::reserve(std::uint64_t size, Kind kind)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot reserve 0 bytes");
    const auto start = m_shadows.reserve(size);
    if (!start) return within(fmt::format("cannot reserve an address range of {} bytes", size), start.error());
    return insert(*start, size, kind);
}

Result<MemoryRef> Memory::reserve_host_shadow(std::uint64_t size)
{
    if (size == 0) return fail(ErrorCode::invalid_argument, "cannot reserve 0 bytes of host memory");
    const auto start = m_host_shadows.reserve(size);
    if (!start) return within(fmt::format("cannot reserve {} bytes of page-locked host memory", size), start.error());
    return insert(*start, size, Kind::host_shadow);
}

void Memory::release(const MemoryRef& memory) noexcept
{
    const std::uint64_t start = memory.address.flat();
    Allocation released;
    {
        const std::scoped_lock lock(m_mutex);
        const auto found = m_allocations.find(start);
        if (memory.address.base != k_flat_base || found == m_allocations.end()) {
            log().warn("release of {:#x}, which this device did not allocate or has already released: nothing is done",
                       start);
            return;
        }
        released = found->second;
        m_allocations.erase(found);
    }
    free(start, released);
}

void Memory::free(std::uint64_t start, const Allocation& allocation) noexcept
{
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const Driver& driver = *m_core.driver;
    Result<void> freed;
    switch (allocation.kind) {
    case Kind::device:
        freed = driver.call("cuMemFree", driver.cuMemFree, CUdeviceptr{start});
        m_core.tally.remove(allocation.size);
        break;
    case Kind::host:
        freed = driver.call("cuMemFreeHost", driver.cuMemFreeHost, Address::from_flat(start).pointer());
        break;
    case Kind::shadow:
    case Kind::decoy: freed = m_shadows.release(start); break;
    case Kind::host_shadow: freed = m_host_shadows.release(start); break;
    }
    if (!freed) log().warn("release of {:#x}: {}", start, freed.error().message);
}

std::optional<Memory::Range> Memory::ours_before(std::uint64_t flat) const
{
    const std::scoped_lock lock(m_mutex);
    auto found = m_allocations.upper_bound(flat);
    if (found == m_allocations.begin()) return std::nullopt;
    --found;
    return Range{found->first, found->second.size, found->second.kind};
}

std::optional<Memory::Range> Memory::ask_driver(std::uint64_t flat) const noexcept
{
    const CurrentContext context(m_core);
    const Driver& driver = *m_core.driver;
    // cuMemGetAddressRange does not know host memory.
    CUdeviceptr start = 0;
    std::size_t size = 0;
    const auto ask = [&](CUpointer_attribute what, void* value) {
        return driver.status("cuPointerGetAttribute", driver.cuPointerGetAttribute, value, what, CUdeviceptr{flat}) ==
               CUDA_SUCCESS;
    };
    if (!ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start) || !ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, &size) ||
        size == 0 || flat < start || flat - start >= size)
        return std::nullopt;
    unsigned type = CU_MEMORYTYPE_DEVICE;
    const bool is_host = ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type) && type == CU_MEMORYTYPE_HOST;
    return Range{start, size, is_host ? Kind::host : Kind::device};
}

Result<void> Memory::check(const char* what, const Address& address, std::uint64_t size, Touch touch) const
{
    const std::uint64_t flat = address.flat();
    const auto leaves = [&](const Range& range) {
        return fail(ErrorCode::invalid_argument, "{}: {} bytes at offset {} do not fit into an allocation of {} bytes",
                    what, size, flat - range.start, range.size);
    };
    const auto unknown = [&](std::uint64_t at) {
        return fail(ErrorCode::invalid_argument, "{}: {:#x} is not memory of this device (or was released)", what, at);
    };
    if (address.base != k_flat_base) return unknown(address.base);
    const auto ours = ours_before(flat);
    if (ours && flat - ours->start < ours->size) {
        if (size > ours->size - (flat - ours->start)) return leaves(*ours);
        if (ours->kind == Kind::shadow && touch == Touch::run)
            return fail(ErrorCode::invalid_argument,
                        "{}: {:#x} is an address that is reserved for captures, and has no memory", what, flat);
        return {};
    }
    // Memory of other code may consist of several adjacent mappings (PyTorch's expandable segments).
    for (std::uint64_t at = flat, left = size;;) {
        const auto range = ask_driver(at);
        if (!range || (ours && overlaps(*ours, *range))) {
            if (at == flat && ours && flat - ours->start <= ours->size) return leaves(*ours);
            return unknown(at);
        }
        const std::uint64_t room = range->size - (at - range->start);
        if (left <= room) return {};
        left -= room;
        at += room;
    }
}

MemorySpace Memory::space_of(const Address& address) const noexcept
{
    const std::uint64_t flat = address.flat();
    auto range = ours_before(flat);
    if (!range || flat - range->start >= range->size) range = ask_driver(flat);
    const bool is_host = range && (range->kind == Kind::host || range->kind == Kind::host_shadow);
    return is_host ? MemorySpace::host : MemorySpace::device;
}

bool Memory::is_managed(const Address& address) const noexcept
{
    const CurrentContext context(m_core);
    const Driver& driver = *m_core.driver;
    unsigned managed = 0;
    const CUresult asked = driver.status("cuPointerGetAttribute", driver.cuPointerGetAttribute, &managed,
                                         CU_POINTER_ATTRIBUTE_IS_MANAGED, CUdeviceptr{address.flat()});
    return asked == CUDA_SUCCESS && managed != 0;
}

bool Memory::is_known(std::uint64_t flat) const noexcept
{
    const auto ours = ours_before(flat);
    return (ours && flat - ours->start < ours->size) || ask_driver(flat).has_value();
}

std::optional<MemoryRef> Memory::allocation_at(std::uint64_t flat) const noexcept
{
    auto range = ours_before(flat);
    if (!range || flat - range->start >= range->size) {
        const auto ours = range;
        range = ask_driver(flat);
        // The address is in the driver's padding after our memory, or in the guard behind a shadow.
        if (range && ours && overlaps(*ours, *range)) return std::nullopt;
    }
    if (!range || range->kind == Kind::shadow || range->kind == Kind::decoy) return std::nullopt;
    return MemoryRef{Address::from_flat(range->start), range->size};
}

} // namespace warmgraph::backends::cuda
