// Pages of the heap are touched ahead of their use. They must be those pages that small allocations of a second thread
// get later.
#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "graph/host_pages.hpp"
#include "lacking.hpp"

namespace warmgraph::backends::cuda::cuda_host_pages_test {
namespace {

long page_faults_of_this_thread()
{
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

/// Whether the system can touch pages ahead: it has MADV_POPULATE_WRITE (Linux 5.14).
bool system_touches_ahead()
{
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    constexpr int k_populate_write = 23;
    const bool does = ::madvise(page, size, k_populate_write) == 0;
    ::munmap(page, size);
    return does;
}

/// How many page faults occur while the driver's allocations for one graph are made. They are many and small, and are
/// kept.
long faults_of_one_graph(std::size_t bytes, std::vector<void*>& kept)
{
    constexpr std::size_t k_block = 248;
    const long before = page_faults_of_this_thread();
    for (std::size_t taken = 0; taken < bytes; taken += k_block + sizeof(void*)) {
        void* const block = std::malloc(k_block); // NOLINT: as the driver
        static_cast<char*>(block)[0] = static_cast<char*>(block)[k_block - 1] = 1;
        kept.push_back(block);
    }
    return page_faults_of_this_thread() - before;
}

TEST(GrownHeap, LeavesNoPageFaultsAlsoWhereAHeapEnds)
{
    if (!system_touches_ahead()) WARMGRAPH_SKIP_LACKING("a system that touches memory on request (Linux 5.14)");
    constexpr std::size_t k_bytes = 8'000'000;
    constexpr int k_graphs = 20;                                // glibc's heap has room for seven
    std::vector<void*> kept(k_graphs * k_bytes / 248, nullptr); // faults on the vector's own pages happen here
    kept.clear();
    long faults = 0;
    std::thread{[&] {
        for (int i = 0; i < k_graphs; ++i) {
            const GrownHeap heap(k_bytes);
            faults += faults_of_one_graph(k_bytes, kept);
        }
    }}.join();
    for (void* const block : kept) std::free(block); // NOLINT
    const long pages = static_cast<long>(k_graphs * k_bytes) / ::sysconf(_SC_PAGESIZE);
    EXPECT_LT(faults, pages / 50) << "of " << pages << " pages";
}

} // namespace
} // namespace warmgraph::backends::cuda::cuda_host_pages_test
