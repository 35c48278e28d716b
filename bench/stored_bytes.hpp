// Compares a cache folder's size with the machine code that its graphs launch.
#pragma once

#include <cstdint>
#include <filesystem>

namespace warmgraph::bench {

struct StoredBytes {
    std::uint64_t stored = 0;  ///< entries and images, on disk
    std::uint64_t kernels = 0; ///< sections of the launched kernels in their cubins, each counted once
};

/// Throws std::runtime_error when an entry or an image cannot be read.
[[nodiscard]] StoredBytes stored_bytes(const std::filesystem::path& cache);

} // namespace warmgraph::bench
