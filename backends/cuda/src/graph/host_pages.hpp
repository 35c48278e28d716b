// Host memory for what the driver is about to allocate.
#pragma once

#include <cstddef>

namespace warmgraph::backends::cuda {

/// While it lives, the calling thread's next allocations, `bytes` in all, find memory that is there already: the heap grows
/// once, and its pages are touched, in huge ones where the system gives them on request (transparent_hugepage "madvise" or "always"). The
/// driver keeps 8 KB of host memory for each kernel node of a graph and its exec, takes it in small pieces, and touches it
/// under its lock; glibc's heaps of threads other than the first grow by a page at a time, each under the lock of the
/// process's memory map. Threads that build graphs at once then wait for each other (measured: NOTES.md). Best effort: where
/// the allocator is another one, or the system older (Linux 5.14), nothing comes of it.
/// Side effects: up to a quarter and 4 MB more than were asked for are resident, and glibc returns free memory to the system as late as in a
/// program that has freed a block of 31 MB.
/// Not for other threads than the one that made it.
class GrownHeap {
public:
    explicit GrownHeap(std::size_t bytes) noexcept;
    GrownHeap(const GrownHeap&) = delete;
    GrownHeap& operator=(const GrownHeap&) = delete;
    ~GrownHeap();

private:
    void* m_pin = nullptr; ///< a few bytes at the start: glibc gives an empty heap back at once
};

} // namespace warmgraph::backends::cuda
