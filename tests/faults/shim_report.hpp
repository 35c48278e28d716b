// The report that the shim writes for the test. It is in shared memory, which survives a SIGKILL.
#pragma once

#include <atomic>
#include <cstdint>

namespace warmgraph::test {

struct ShimReport {
    std::atomic<std::uint64_t> operations; ///< how many operations were counted
    std::atomic<std::uint64_t> injected;   ///< how many operations killed the program or failed
    char last[512];                        ///< the first operation with a fault, e.g. "renameat /x/y"
};

} // namespace warmgraph::test
