// Names, for people, of the driver's numbers for launch and function properties (cuda.h 13.0). Unknown numbers are
// stored and shown too.
#pragma once

#include <cstdint>
#include <string>

namespace warmgraph::cachefmt {

/// The name of a CUlaunchAttributeID: "cluster dimension"; "attribute 99" if unknown.
[[nodiscard]] std::string launch_attribute_name(std::uint32_t id);
/// The name of a CUfunction_attribute: "max dynamic shared size bytes"; "function attribute 99" if unknown.
[[nodiscard]] std::string function_attribute_name(std::uint32_t id);

/// Flags of memory operations: CUstreamWaitValue_flags, CUstreamWriteValue_flags, CUstreamMemoryBarrier_flags.
inline constexpr std::uint32_t k_wait_comparison = 3; ///< a mask of 2 bits; the values 0 to 3 mean >=, ==, and, nor
inline constexpr std::uint32_t k_wait_flush = 1U << 30;
inline constexpr std::uint32_t k_write_without_barrier = 1;
inline constexpr std::uint32_t k_barrier_of_device = 1;

/// Flags of semaphores that skip the synchronisation of NvSciBuf memory (in CUDA's signal and wait parameters).
inline constexpr std::uint32_t k_signal_skip_memsync = 1;
inline constexpr std::uint32_t k_wait_skip_memsync = 2;

/// True if the attribute's value is one 32-bit number (cooperative, priority); below: if it is three (cluster
/// dimensions).
[[nodiscard]] bool is_one_number(std::uint32_t launch_attribute) noexcept;
[[nodiscard]] bool is_three_numbers(std::uint32_t launch_attribute) noexcept;

} // namespace warmgraph::cachefmt
