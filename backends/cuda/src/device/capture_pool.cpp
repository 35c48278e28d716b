#include "device/capture_pool.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "device/physical_memory.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {
namespace {

constexpr std::uint64_t k_mappings = 64; ///< usual number in a shared segment; each takes 25 us (measured)
constexpr std::uint64_t k_largest_piece = 256ULL << 20; ///< bytes of memory that a shared segment takes at most
constexpr std::uint64_t k_halves = 1ULL << 32;          ///< bytes with the same upper half of their addresses
/// Parameters of kernels contain small numbers beside old upper halves of addresses. Such a word is not an address in
/// the pool if the pool has no addresses just above a multiple of k_halves. Neither has memory that the driver puts
/// there later. Nor does such a word move as far as the pool, because two captures' pools have other distances from the
/// multiples: always for one that runs and one that never runs, mostly for those of two processes.
constexpr std::uint64_t k_least_behind = 32ULL << 20;
constexpr std::uint64_t k_distances = 32;
/// Processors and drivers rarely use addresses from here to 2^46.
constexpr std::uint64_t k_first_far = 1ULL << 44;
/// Driver 580 on an H200 follows nearly all requests for a multiple of 32 MiB, and no others (measured).
constexpr int k_most_wishes = 16;

} // namespace

Result<std::shared_ptr<CapturePool>> CudaCapturePool::open(Core& core, PoolMemory memory)
{
    const CurrentContext context(core);
    const OutsideCapture outside(core);
    const Driver& driver = *core.driver;
    const CUmemAllocationProp wanted = device_memory(core);
    std::size_t unit = 0, left = 0, total = 0;
    auto asked = driver.call("cuMemGetAllocationGranularity", driver.cuMemGetAllocationGranularity, &unit, &wanted,
                             CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (asked) asked = driver.call("cuMemGetInfo", driver.cuMemGetInfo, &left, &total);
    if (!asked) return std::unexpected(asked.error());
    std::random_device random;
    std::uniform_int_distribution<std::uint64_t> pair{0, k_distances / 2 - 1};
    const std::uint64_t behind = (2 * pair(random) + (memory == PoolMemory::own ? 1 : 2)) * k_least_behind;
    auto pool = std::make_shared<CudaCapturePool>(core, memory, std::max<std::uint64_t>(unit, 4096), behind);
    if (auto reserved = pool->reserve(round_up(total, k_halves) + k_halves); !reserved)
        return std::unexpected(reserved.error());
    return pool;
}

Result<void> CudaCapturePool::reserve(std::uint64_t bytes)
{
    const Driver& driver = *m_core.driver;
    std::random_device random;
    std::uniform_int_distribution<std::uint64_t> multiple{k_first_far / k_halves, (4 * k_first_far - bytes) / k_halves};
    for (int wish = 0; wish < k_most_wishes; ++wish) {
        const CUdeviceptr wanted = multiple(random) * k_halves + m_behind;
        CUdeviceptr start = 0;
        const CUresult status = driver.status("cuMemAddressReserve", driver.cuMemAddressReserve, &start, bytes,
                                              std::size_t{0}, wanted, 0ULL);
        const bool is_reserved = status == CUDA_SUCCESS && start != 0;
        if (is_reserved && start == wanted) {
            m_start = start;
            m_size = bytes;
            return {};
        }
        if (is_reserved) static_cast<void>(driver.status("cuMemAddressFree", driver.cuMemAddressFree, start, bytes));
    }
    return fail(ErrorCode::out_of_memory, "the driver reserves no addresses above 2^44");
}

CudaCapturePool::~CudaCapturePool()
{
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    for (const auto& [start, parts] : m_segments) unmap(start, parts);
    if (m_size == 0) return;
    const Driver& driver = *m_core.driver;
    auto freed = driver.call("cuMemAddressFree", driver.cuMemAddressFree, CUdeviceptr{m_start}, m_size);
    if (!freed) log().warn("cannot free the addresses of a capture's pool: {}", freed.error().message);
}

Result<void> CudaCapturePool::map(std::uint64_t start, std::uint64_t size, std::uint64_t piece, Parts& parts) const
{
    const Driver& driver = *m_core.driver;
    const CUmemAllocationProp wanted = device_memory(m_core);
    std::uint64_t mapped = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
    if (size - mapped < piece) return {};
    CUmemGenericAllocationHandle handle = 0;
    auto done = driver.call("cuMemCreate", driver.cuMemCreate, &handle, piece, &wanted, 0ULL);
    if (!done) return done;
    for (; done && size - mapped >= piece; mapped += piece) {
        done =
            driver.call("cuMemMap", driver.cuMemMap, CUdeviceptr{start + mapped}, piece, std::size_t{0}, handle, 0ULL);
        if (done) parts.push_back(piece);
    }
    // The memory lives as long as it is mapped.
    auto released = driver.call("cuMemRelease", driver.cuMemRelease, handle);
    return done ? released : done;
}

/// A mapping must be as large as its piece of memory: the driver refuses to map a part of one (error 801 on an H200).
Result<void> CudaCapturePool::map(std::uint64_t start, std::uint64_t size, Parts& parts) const
{
    const bool is_shared = m_memory == PoolMemory::shared;
    const std::uint64_t large =
        is_shared ? std::bit_floor(std::clamp(size / k_mappings / m_unit, std::uint64_t{1}, k_largest_piece / m_unit)) *
                        m_unit
                  : size;
    auto mapped = map(start, size, large, parts);
    const bool is_full = !mapped && is_shared && mapped.error().code == ErrorCode::out_of_memory;
    if (mapped || is_full) mapped = map(start, size, m_unit, parts);
    if (!mapped) return mapped;
    return allow_access(m_core, start, size);
}

void CudaCapturePool::unmap(std::uint64_t start, const Parts& parts) const noexcept
{
    const Driver& driver = *m_core.driver;
    for (const std::uint64_t part : parts) {
        if (auto done = driver.call("cuMemUnmap", driver.cuMemUnmap, CUdeviceptr{start}, part); !done)
            log().warn("cannot free the memory of a capture's pool: {}", done.error().message);
        start += part;
    }
}

Result<std::uint64_t> CudaCapturePool::allocate(std::uint64_t bytes)
{
    const std::scoped_lock lock(m_mutex);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const std::uint64_t left = m_size - m_used;
    std::uint64_t start = m_start + m_used;
    if (const std::uint64_t multiple = round_up(start + 1, k_halves); bytes < k_halves && bytes > multiple - start)
        start = multiple + m_behind;
    if (bytes == 0 || bytes > left || start + bytes > m_start + m_size)
        return fail(ErrorCode::out_of_memory, "{} bytes do not fit into the {} bytes of addresses that are left", bytes,
                    left);
    const std::uint64_t size = round_up(bytes, m_unit);
    Parts parts;
    if (auto mapped = map(start, size, parts); !mapped) {
        unmap(start, parts);
        return std::unexpected(mapped.error());
    }
    m_used = start + size - m_start;
    m_segments.emplace(start, std::move(parts));
    return start;
}

void CudaCapturePool::release(std::uint64_t start) noexcept
{
    const std::scoped_lock lock(m_mutex);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const auto found = m_segments.find(start);
    if (found == m_segments.end()) return;
    unmap(start, found->second);
    m_segments.erase(found);
}

} // namespace warmgraph::backends::cuda
