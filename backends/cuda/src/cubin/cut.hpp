// Makes a cubin smaller: keeps only a graph's kernels and the code and data that they need (see ../../IMAGES.md).
#pragma once

#include <span>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

/// Returns the image with only `kernels`; never larger than `image`. Section and symbol numbers and the kept code do
/// not change. Deterministic. unsupported: the file has an unknown part (the caller then keeps the whole image) or
/// lacks a kernel. corrupt: parts of the file contradict each other.
[[nodiscard]] Result<Bytes> cut_cubin(ByteView image, std::span<const std::string> kernels);

} // namespace warmgraph::backends::cuda
