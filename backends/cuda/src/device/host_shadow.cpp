#include "device/host_shadow.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace warmgraph::backends::cuda {
namespace {

std::uint64_t page_size()
{
    static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return size;
}

void* to_pointer(std::uint64_t address)
{
    return reinterpret_cast<void*>(address); // NOLINT: the system's type
}

/// Maps memory at the address `wish`, which is only a hint for the system; 0 on failure. MAP_FIXED_NOREPLACE is not
/// used, because ThreadSanitizer ends the program if it reserves that address.
std::uint64_t map_at(std::uint64_t wish, std::uint64_t size)
{
    constexpr int k_flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* const mapped = ::mmap(to_pointer(wish), size, PROT_READ | PROT_WRITE, k_flags, -1, 0);
    return mapped == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(mapped);
}

void unmap(std::uint64_t start, std::uint64_t size) { static_cast<void>(::munmap(to_pointer(start), size)); }

} // namespace

Result<std::uint64_t> HostShadows::reserve(std::uint64_t size)
{
    if (size > 1ULL << 46) return fail(ErrorCode::out_of_memory, "{} bytes are more than the address space", size);
    Shadow shadow;
    shadow.mapped = (size + page_size() - 1) / page_size() * page_size();
    std::uint64_t start = 0;
    for (int wish = 0; wish < k_wishes && start == 0; ++wish) {
        shadow.place = FarPlace::take(shadow.mapped, page_size());
        if (!shadow.place) break;
        start = map_at(shadow.place->start(), shadow.mapped);
        if (start == shadow.place->start()) break;
        if (start != 0) unmap(start, shadow.mapped);
        start = 0;
        shadow.place.reset();
    }
    if (start == 0) start = map_at(0, shadow.mapped);
    if (start == 0)
        return fail(ErrorCode::out_of_memory, "the system cannot give {} bytes of host memory", shadow.mapped);
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const Driver& driver = *m_core.driver;
    constexpr unsigned k_flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    auto registered = driver.call("cuMemHostRegister", driver.cuMemHostRegister, to_pointer(start),
                                  std::size_t{shadow.mapped}, k_flags);
    if (!registered) {
        unmap(start, shadow.mapped);
        return std::unexpected(registered.error());
    }
    const std::scoped_lock lock(m_mutex);
    m_shadows.emplace(start, std::move(shadow));
    return start;
}

Result<void> HostShadows::release(std::uint64_t start)
{
    Shadow shadow;
    {
        const std::scoped_lock lock(m_mutex);
        auto found = m_shadows.extract(start);
        if (!found) return fail(ErrorCode::not_found, "no reserved host memory starts at {:#x}", start);
        shadow = std::move(found.mapped());
    }
    const CurrentContext context(m_core);
    const OutsideCapture outside(m_core);
    const Driver& driver = *m_core.driver;
    auto done = driver.call("cuMemHostUnregister", driver.cuMemHostUnregister, to_pointer(start));
    unmap(start, shadow.mapped);
    return done;
}

} // namespace warmgraph::backends::cuda
