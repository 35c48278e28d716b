#include "host_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

namespace warmgraph::backends::cuda {

#ifndef MADV_POPULATE_WRITE // Linux 5.14; Debian 12's glibc has it
#define MADV_POPULATE_WRITE 23
#endif

namespace {

/// glibc takes larger blocks from the system alone, however often such are freed (DEFAULT_MMAP_THRESHOLD_MAX, 32 MiB), and
/// gives each back at once.
constexpr std::size_t k_largest = 31U << 20U;

void populate(std::uintptr_t begin, std::size_t size) noexcept
{
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    // A mapping of its own (behind glibc's header of 16 bytes), or another allocator's: freed, it serves nobody else.
    if (begin % page <= 16) return;
    const std::uintptr_t end = (begin + size) / page * page;
    begin = (begin + page - 1) / page * page;
    if (begin < end)
        static_cast<void>(
            ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE)); // NOLINT: whole pages
}

/// glibc learns from it: what is as large as a block that was freed comes from the heap from then on, and of a heap's end
/// twice that much is kept. Nothing of it is touched.
bool free_a_large_block() noexcept
{
    void* const volatile block = std::malloc(k_largest); // NOLINT: volatile, else the compiler leaves both out
    std::free(block);                                    // NOLINT
    return true;
}

} // namespace

void grow_heap(std::size_t bytes) noexcept
{
    static const bool learnt = free_a_large_block();
    static_cast<void>(learnt);
    // As much again for what the thread itself allocates before its next graph, untouched.
    void* const memory = std::malloc(std::min(2 * bytes, k_largest)); // NOLINT: the allocator that the driver uses
    if (memory != nullptr) populate(reinterpret_cast<std::uintptr_t>(memory), std::min(bytes, k_largest));
    std::free(memory); // NOLINT
}

} // namespace warmgraph::backends::cuda
