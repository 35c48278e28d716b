#include "warmgraph/backends/base_id.hpp"

#include <atomic>

namespace warmgraph::backends {

std::uint64_t next_base_id() noexcept
{
    constexpr std::uint64_t k_first = 0x00c1'0000'0000'0000;
    constexpr std::uint64_t k_step = 4096;
    static std::atomic<std::uint64_t> next = k_first;
    return next.fetch_add(k_step, std::memory_order_relaxed);
}

} // namespace warmgraph::backends
