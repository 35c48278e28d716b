// What is wrong with a piece of work whatever the backend. invalid_argument says it.
#pragma once

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

/// Not empty, and no overlap within one base. REQUIRES: both ranges lie in their allocations.
[[nodiscard]] Result<void> check_form(const RawCopy& work);
/// A pattern of 1, 2, 4, 8 or 16 bytes; size and offset are multiples of it.
[[nodiscard]] Result<void> check_form(const RawFill& work);
/// For backends that know kernels, plain ranges and empty nodes only (OpenCL): unsupported names what goes beyond.
[[nodiscard]] Result<void> check_plain(const RawKernel& work);
[[nodiscard]] Result<void> check_plain(const RawCopy& work);
[[nodiscard]] Result<void> check_plain(const RawFill& work);
[[nodiscard]] Result<void> check_plain(const RawWork& work);
/// As many operations of the same kinds and flags: what a batch of them keeps over an update.
[[nodiscard]] Result<void> check_update(const RawMemoryOperations& before, const RawMemoryOperations& after);
/// Both signal or both wait, for as many semaphores.
[[nodiscard]] Result<void> check_update(const RawSemaphores& before, const RawSemaphores& after);
/// That GraphExec::update may put `after` in `before`'s place: same kind; kernel, dimensions, and the parameters'
/// number, kinds and sizes as they were.
[[nodiscard]] Result<void> check_update(const RawWork& before, const RawWork& after);
/// Every dependency of the node with this number is an earlier one.
[[nodiscard]] Result<void> check_order(const RawNode& node, std::size_t index);

} // namespace warmgraph::backends
