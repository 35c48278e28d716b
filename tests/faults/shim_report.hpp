// What the shim tells the test, in memory that both share: it outlives a SIGKILL.
#pragma once

#include <atomic>
#include <cstdint>

namespace warmgraph::test {

struct ShimReport {
    std::atomic<std::uint64_t> operations; ///< that were counted
    std::atomic<std::uint64_t> injected;   ///< of them killed after, or made to fail
    char last[512];                        ///< the first that was interfered with: "renameat /x/y"
};

} // namespace warmgraph::test
