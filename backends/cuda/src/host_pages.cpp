#include "host_pages.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace warmgraph::backends::cuda {

#ifndef MADV_POPULATE_WRITE // Linux 5.14; Debian 12's glibc has it
#define MADV_POPULATE_WRITE 23
#endif

/// A list, so that nothing else is allocated between two of them.
struct PopulatedHeap::Piece {
    Piece* before = nullptr;
};

namespace {

/// Below what glibc serves by a mapping of its own (128 KiB), which a later allocation could not use.
constexpr std::size_t k_piece = 64U << 10U;

bool populate(std::uintptr_t begin, std::uintptr_t end) noexcept
{
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    return begin >= end ||
           ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) == 0; // NOLINT: whole pages
}

} // namespace

PopulatedHeap::PopulatedHeap(std::size_t bytes) noexcept
{
    for (std::size_t taken = 0; taken < bytes; taken += k_piece) {
        void* const memory = std::malloc(k_piece); // NOLINT: the allocator that the driver uses
        if (memory == nullptr) break;
        m_last = ::new (memory) Piece{m_last};
        const auto begin = reinterpret_cast<std::uintptr_t>(memory);
        if (!populate(begin, begin + k_piece)) break;
    }
    if (m_last == nullptr) return;
    for (Piece* piece = std::exchange(m_last->before, nullptr); piece != nullptr;)
        std::free(std::exchange(piece, piece->before)); // NOLINT
}

PopulatedHeap::~PopulatedHeap() { std::free(m_last); } // NOLINT

} // namespace warmgraph::backends::cuda
