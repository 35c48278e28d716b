#include "graph/host_pages.hpp"

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
/// Of x86-64, and of AArch64 with pages of 4 KiB. With others the advice is about less, or is refused.
constexpr std::uintptr_t k_huge_page = 2U << 20U;

/// About the whole pages in [at, at + size).
void advise(std::uintptr_t at, std::size_t size, std::uintptr_t page, int advice) noexcept
{
    const std::uintptr_t begin = (at + page - 1) / page * page, end = (at + size) / page * page;
    if (begin < end)
        static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, advice)); // NOLINT: whole pages
}

/// Touches the first `touched` of `size` bytes.
void touch(std::uintptr_t at, std::size_t touched, std::size_t size) noexcept
{
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    // A mapping of its own (behind glibc's header of 16 bytes), or another allocator's: freed, it serves nobody else.
    if (at % page <= 16) return;
    advise(at, size, k_huge_page, MADV_HUGEPAGE);
    advise(at, touched, page, MADV_POPULATE_WRITE);
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
    const std::size_t size = std::min(2 * bytes, k_largest);
    void* const memory = std::malloc(size); // NOLINT: the allocator that the driver uses
    if (memory != nullptr) touch(reinterpret_cast<std::uintptr_t>(memory), std::min(bytes, size), size);
    std::free(memory); // NOLINT
}

} // namespace warmgraph::backends::cuda
