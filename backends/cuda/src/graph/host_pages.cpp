#include "graph/host_pages.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace warmgraph::backends::cuda {

#ifndef MADV_POPULATE_WRITE // Linux 5.14; glibc of Debian 12 has it
#define MADV_POPULATE_WRITE 23
#endif

namespace {

/// glibc always takes larger blocks from the system (DEFAULT_MMAP_THRESHOLD_MAX, 32 MiB) and returns each at once.
constexpr std::size_t k_largest = 31U << 20U;
/// For x86-64, and AArch64 with pages of 4 KiB. With other sizes the advice has less effect, or is refused.
constexpr std::uintptr_t k_huge_page = 2U << 20U;
constexpr std::size_t k_pin = 32;                ///< bytes of the large block that stay allocated
constexpr std::size_t k_least_rest = 32U << 10U; ///< bytes at a heap's end that are too few to use up

/// Advises the pages of `page` bytes that contain [at, at + size). Neighbouring memory in them gets the advice too.
void advise(std::uintptr_t at, std::size_t size, std::uintptr_t page, int advice) noexcept
{
    const std::uintptr_t begin = at / page * page, end = (at + size + page - 1) / page * page;
    static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, advice)); // NOLINT: whole pages
}

void touch(const void* memory, std::size_t size) noexcept
{
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto at = reinterpret_cast<std::uintptr_t>(memory); // NOLINT
    // This block is a separate mapping (behind glibc's 16-byte header) or from another allocator: freed, it is of no
    // use.
    if (memory == nullptr || at % page <= 16) return;
    // Round outwards, so that a heap's first and last huge pages lie in the advised memory too.
    advise(at, size, k_huge_page, MADV_HUGEPAGE);
    // In small pieces, because each call blocks changes of the process's memory map, also for threads in the driver's
    // lock.
    for (std::size_t done = 0; done < size; done += k_huge_page)
        advise(at + done, std::min<std::size_t>(k_huge_page, size - done), page, MADV_POPULATE_WRITE);
}

/// True if the block is in the first thread's heap, which lies below all other heaps and mappings.
bool is_in_first_heap(const void* memory) noexcept { return std::less<>()(memory, ::sbrk(0)); }

/// Blocks that are allocated only to use up a heap.
using Rests = std::array<void*, 12>;

/// Uses up the current heap's end. If over 128 KiB are free there, glibc gives up a thread's new 64-MiB heap at once
/// and takes the large block from the first thread's heap (NOTES.md).
Rests use_up_heap(std::size_t largest) noexcept
{
    Rests rests{};
    std::size_t size = largest;
    for (void*& rest : rests) {
        if (size < k_least_rest) break;
        rest = std::malloc(size); // NOLINT
        if (is_in_first_heap(rest))
            std::free(std::exchange(rest, nullptr)); // NOLINT
        else
            touch(rest, size);
        size /= 2;
    }
    return rests;
}

/// Allocates a large block, whose memory is never touched, and frees it. After that, glibc takes blocks up to this size
/// from the heap, and keeps twice as much free at a heap's end.
bool free_a_large_block() noexcept
{
    void* const volatile block = std::malloc(k_largest); // NOLINT: volatile, so that the compiler keeps both calls
    std::free(block);                                    // NOLINT
    return true;
}

/// Shrinks the block to k_pin bytes, in place. Leaves it whole if the allocator refuses.
void* shrunk(void* memory) noexcept
{
    void* const pin = std::realloc(memory, k_pin); // NOLINT: in place
    return pin != nullptr ? pin : memory;
}

} // namespace

GrownHeap::GrownHeap(std::size_t bytes) noexcept
{
    if (bytes == 0) return;
    static const bool learnt = free_a_large_block();
    static_cast<void>(learnt);
    // A quarter more, for the thread's own allocations.
    const std::size_t size = std::min(bytes + bytes / 4, k_largest);
    void* memory = std::malloc(size);     // NOLINT: the driver's allocator
    void* const near = std::malloc(2000); // NOLINT: too large for the thread's cache of blocks from other heaps
    Rests rests{};
    if (is_in_first_heap(memory) && !is_in_first_heap(near)) {
        std::free(memory); // NOLINT
        rests = use_up_heap(size / 2);
        memory = std::malloc(size); // NOLINT
    }
    touch(memory, size);
    for (void* const rest : rests) std::free(rest); // NOLINT
    std::free(near);                                // NOLINT
    m_pin = shrunk(memory);
}

GrownHeap::~GrownHeap() { std::free(m_pin); } // NOLINT

} // namespace warmgraph::backends::cuda
