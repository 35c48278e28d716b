// Host memory for what the driver is about to allocate.
#pragma once

#include <cstddef>
#include <memory>

namespace warmgraph::backends::cuda {

/// Lets the calling thread's next allocations, `bytes` in all, find pages that are there already. The driver keeps 8 KB of
/// host memory for each kernel node of a graph and its exec (measured: NOTES.md), and touches them under its lock: threads
/// that build graphs at once then wait for each other's page faults. Here each takes its own before the lock. Best effort:
/// on a system that cannot (Linux before 5.14, no memory) nothing happens. The memory goes back to the allocator at once;
/// while the object lives, the allocator does not give it back to the system.
class PopulatedHeap {
public:
    explicit PopulatedHeap(std::size_t bytes) noexcept;
    PopulatedHeap(const PopulatedHeap&) = delete;
    PopulatedHeap& operator=(const PopulatedHeap&) = delete;
    ~PopulatedHeap();

private:
    struct Piece;
    Piece* m_last = nullptr; ///< behind the others: allocators give back only what lies at the end
};

} // namespace warmgraph::backends::cuda
