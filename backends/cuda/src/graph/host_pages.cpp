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

#ifndef MADV_POPULATE_WRITE // Linux 5.14; Debian 12's glibc has it
#define MADV_POPULATE_WRITE 23
#endif

namespace {

/// glibc takes larger blocks from the system alone, however often such are freed (DEFAULT_MMAP_THRESHOLD_MAX, 32 MiB), and
/// gives each back at once.
constexpr std::size_t k_largest = 31U << 20U;
/// Of x86-64, and of AArch64 with pages of 4 KiB. With others the advice is about less, or is refused.
constexpr std::uintptr_t k_huge_page = 2U << 20U;
constexpr std::size_t k_pin = 32;                ///< bytes of what stays of the large block
constexpr std::size_t k_least_rest = 32U << 10U; ///< bytes of a heap's end that are not worth a block

/// About the pages of `page` bytes that [at, at + size) lies in. What is mapped beside it gets the advice as well.
void advise(std::uintptr_t at, std::size_t size, std::uintptr_t page, int advice) noexcept
{
    const std::uintptr_t begin = at / page * page, end = (at + size + page - 1) / page * page;
    static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, advice)); // NOLINT: whole pages
}

void touch(const void* memory, std::size_t size) noexcept
{
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto at = reinterpret_cast<std::uintptr_t>(memory); // NOLINT
    // A mapping of its own (behind glibc's header of 16 bytes), or another allocator's: freed, it serves nobody else.
    if (memory == nullptr || at % page <= 16) return;
    // Outwards, since a huge page must lie wholly in memory that was advised about: a heap's first and last ones as well.
    advise(at, size, k_huge_page, MADV_HUGEPAGE);
    // Piece by piece: meanwhile nobody else changes the process's memory map, and another thread may have to, in the driver's lock.
    for (std::size_t done = 0; done < size; done += k_huge_page)
        advise(at + done, std::min<std::size_t>(k_huge_page, size - done), page, MADV_POPULATE_WRITE);
}

/// In the heap of the first thread, which lies below all others and all mappings.
bool is_in_first_heap(const void* memory) noexcept { return std::less<>()(memory, ::sbrk(0)); }

/// Blocks that were taken so that another one comes from elsewhere.
using Rests = std::array<void*, 12>;

/// glibc gives up a thread's fresh heap of 64 MiB at once where more than 128 KiB at the end of the one before are free, and
/// takes the large block from the first thread's heap (NOTES.md). Small blocks come from that end until it is used up.
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

/// glibc learns from it: what is as large as a block that was freed comes from the heap from then on, and of a heap's end
/// twice that much is kept. Nothing of it is touched.
bool free_a_large_block() noexcept
{
    void* const volatile block = std::malloc(k_largest); // NOLINT: volatile, else the compiler leaves both out
    std::free(block);                                    // NOLINT
    return true;
}

/// The same block, of k_pin bytes. Whole where the allocator refuses.
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
    // And some for what the thread itself allocates meanwhile.
    const std::size_t size = std::min(bytes + bytes / 4, k_largest);
    void* memory = std::malloc(size);     // NOLINT: the allocator that the driver uses
    void* const near = std::malloc(2000); // NOLINT: larger than what a thread keeps of other threads' heaps
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
