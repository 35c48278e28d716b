// Checks of work that apply to every backend. Errors are invalid_argument unless stated.
#pragma once

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

/// The copy is not empty and does not overlap itself within one base. REQUIRES: both ranges lie in their allocations.
[[nodiscard]] Result<void> check_form(const RawCopy& work);
/// The pattern has 1, 2, 4, 8 or 16 bytes; size and offset are multiples of it.
[[nodiscard]] Result<void> check_form(const RawFill& work);
/// For backends with only kernels, plain ranges and empty nodes (OpenCL): unsupported names anything else.
[[nodiscard]] Result<void> check_plain(const RawKernel& work);
[[nodiscard]] Result<void> check_plain(const RawCopy& work);
[[nodiscard]] Result<void> check_plain(const RawFill& work);
[[nodiscard]] Result<void> check_plain(const RawWork& work);
/// The update has the same number of operations, of the same kinds and flags.
[[nodiscard]] Result<void> check_update(const RawMemoryOperations& before, const RawMemoryOperations& after);
/// Both signal or both wait, and the number of semaphores is the same.
[[nodiscard]] Result<void> check_update(const RawSemaphores& before, const RawSemaphores& after);
/// Checks that GraphExec::update may replace `before` with `after`: the same kind, kernel, dimensions, and number,
/// kinds and sizes of parameters.
[[nodiscard]] Result<void> check_update(const RawWork& before, const RawWork& after);
/// Every dependency of the node with this index is an earlier node.
[[nodiscard]] Result<void> check_order(const RawNode& node, std::size_t index);

} // namespace warmgraph::backends
