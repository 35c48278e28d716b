// The graph that the CUDA benchmarks replay: a chain of small kernels, eight of them distinct.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "warmgraph/warmgraph.hpp"

namespace warmgraph::bench {

/// The state that all chains of a process share.
class ChainDevice {
public:
    ChainDevice();

    static constexpr std::uint32_t k_items = 1024;
    static constexpr std::int32_t k_position = 3;

    Device device{"cuda"};
    Program program;
    Buffer x, other, y; ///< f32[k_items]: two inputs and an output
};

/// Enqueues the chain. Every node reads `x` and the scalar `position`, so a change of either rewrites all nodes. `seed`
/// makes chains of equal length differ.
void enqueue_chain(Stream& stream, const Program& program, std::uint32_t nodes, std::uint32_t seed, Address x,
                   Address y, const std::array<Address, 2>& scratch, std::int32_t position);

/// Returns the spec of a chain: input x, output y, scalar position.
[[nodiscard]] Spec chain_spec(const ChainDevice& shared);

/// Wraps one chain as a cached function with its own scratch memory.
[[nodiscard]] Function wrap_chain(Cache& cache, const ChainDevice& shared, std::uint32_t nodes, std::uint32_t seed = 0);

[[nodiscard]] Cache open_cache(const std::string& folder, Policy policy);

/// Throws std::runtime_error with the reason when the function was not replayed.
void expect_replayed(const Function& function);

} // namespace warmgraph::bench
