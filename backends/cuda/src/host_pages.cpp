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
    const auto allocate = [this](std::size_t size) {
        void* const memory = std::malloc(size); // NOLINT: the allocator that the driver uses
        if (memory != nullptr) m_last = ::new (memory) Piece{m_last};
        return memory != nullptr;
    };
    for (std::size_t taken = 0; taken < bytes; taken += k_piece)
        if (!allocate(k_piece) ||
            !populate(reinterpret_cast<std::uintptr_t>(m_last), reinterpret_cast<std::uintptr_t>(m_last) + k_piece))
            break;
    Piece* const pieces = m_last;
    m_last = nullptr;
    if (pieces != nullptr) allocate(sizeof(Piece));
    for (Piece* piece = pieces; piece != nullptr;) std::free(std::exchange(piece, piece->before)); // NOLINT
    if (m_last != nullptr) m_last->before = nullptr;
}

PopulatedHeap::~PopulatedHeap() { std::free(m_last); } // NOLINT

} // namespace warmgraph::backends::cuda
