// The shim's report to the test, in shared memory, which outlives a SIGKILL.
#pragma once

#include <atomic>
#include <cstdint>

namespace warmgraph::test {

struct ShimReport {
    std::atomic<std::uint64_t> operations; ///< operations that were counted
    std::atomic<std::uint64_t> injected;   ///< operations that killed the program or failed
    char last[512];                        ///< the first operation with a fault, e.g. "renameat /x/y"
};

} // namespace warmgraph::test
