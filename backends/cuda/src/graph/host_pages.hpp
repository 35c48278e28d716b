// Prepares host memory for allocations of the driver.
#pragma once

#include <cstddef>

namespace warmgraph::backends::cuda {

/// Prepares heap memory for the calling thread's next allocations, `bytes` in all: it grows the heap once and touches
/// its pages, as huge pages if the system allows (transparent_hugepage "madvise" or "always"). Reason: for each kernel
/// node the driver allocates 8 KB in small pieces under its lock, and glibc's heaps, except the first thread's, grow
/// page by page under the lock of the process's memory map. So threads that build graphs at once would wait for each
/// other (measured: NOTES.md). With another allocator or before Linux 5.14 it has no effect.
/// Side effects: up to a quarter and 4 MB more memory become resident, and glibc returns free memory to the system
/// later, as in a program that has freed a block of 31 MB.
/// Use it on the thread that made it.
class GrownHeap {
public:
    explicit GrownHeap(std::size_t bytes) noexcept;
    GrownHeap(const GrownHeap&) = delete;
    GrownHeap& operator=(const GrownHeap&) = delete;
    ~GrownHeap();

private:
    void* m_pin = nullptr; ///< keeps the heap alive: glibc returns an empty heap at once
};

} // namespace warmgraph::backends::cuda
