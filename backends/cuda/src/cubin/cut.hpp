// Makes a cubin smaller: the kernels that a graph uses, and what they need (how: ../../IMAGES.md).
#pragma once

#include <span>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

/// The image with only `kernels` in it; never larger than `image`. Sections and symbols keep their numbers and the code
/// that stays its bytes. The same input gives the same bytes. unsupported where the file has anything that is not known
/// (the caller keeps the whole then) or a kernel is not in it; corrupt where it contradicts itself.
[[nodiscard]] Result<Bytes> cut_cubin(ByteView image, std::span<const std::string> kernels);

} // namespace warmgraph::backends::cuda
