// A step of a library's kernels: products of matrices through cuBLASLt.
#pragma once

#include <array>
#include <cstdint>

#include "warmgraph/warmgraph.hpp"

namespace warmgraph::bench {

/// The memory of the step, and its shapes: six that follow each other and fit.
class ProductsDevice {
public:
    ProductsDevice();

    static constexpr std::uint32_t k_rows = 4;
    /// And from the last to the first.
    static constexpr std::array<std::uint32_t, 6> k_widths{256, 1024, 256, 768, 256, 512};

    Device device{"cuda"};
    Buffer x, y;                                  ///< f32[k_rows][k_widths[0]]
    std::array<Buffer, k_widths.size()> matrices; ///< i: f32[k_widths[i + 1]][k_widths[i]]
};

/// `count` products, each of the one before: input x, output y, the matrices as read-only states. cuBLASLt is loaded where
/// the function runs, never where it is replayed. `count` is even, so that the last result is as wide as y.
[[nodiscard]] Function wrap_products(Cache& cache, const ProductsDevice& shared, std::uint32_t count);

} // namespace warmgraph::bench
