// A step of library kernels: products of matrices through cuBLASLt.
#pragma once

#include <array>
#include <cstdint>

#include "warmgraph/warmgraph.hpp"

namespace warmgraph::bench {

/// The memory of the step, and its six shapes; the output of each product fits the next one.
class ProductsDevice {
public:
    ProductsDevice();

    static constexpr std::uint32_t k_rows = 4;
    /// The width after each product; after the last product, the width is the first one again.
    static constexpr std::array<std::uint32_t, 6> k_widths{256, 1024, 256, 768, 256, 512};

    Device device{"cuda"};
    Buffer x, y;                                  ///< f32[k_rows][k_widths[0]]
    std::array<Buffer, k_widths.size()> matrices; ///< i: f32[k_widths[i + 1]][k_widths[i]]
};

/// Wraps `count` products in a chain: input x, output y, the matrices as read-only states. cuBLASLt is loaded when the
/// function runs, never when it is replayed. `count` must be even, so that the last result is as wide as y.
[[nodiscard]] Function wrap_products(Cache& cache, const ProductsDevice& shared, std::uint32_t count);

} // namespace warmgraph::bench
