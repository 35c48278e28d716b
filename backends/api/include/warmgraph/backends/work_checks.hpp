// Checks of work that apply to every backend. Errors are invalid_argument unless stated.
#pragma once

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

/// Checks that the copy is not empty and does not overlap itself. REQUIRES: both ranges lie in their allocations.
[[nodiscard]] Result<void> check_form(const RawCopy& work);
/// Checks that the pattern has 1, 2, 4, 8 or 16 bytes, and that size and offset are multiples of it.
[[nodiscard]] Result<void> check_form(const RawFill& work);
/// For backends that have only kernels, plain ranges and empty nodes (OpenCL). unsupported: the work needs more, which
/// the message names.
[[nodiscard]] Result<void> check_plain(const RawKernel& work);
[[nodiscard]] Result<void> check_plain(const RawCopy& work);
[[nodiscard]] Result<void> check_plain(const RawFill& work);
[[nodiscard]] Result<void> check_plain(const RawWork& work);
/// Checks that `after` has the same number of operations as `before`, with the same kinds and flags.
[[nodiscard]] Result<void> check_update(const RawMemoryOperations& before, const RawMemoryOperations& after);
/// Checks that both signal or both wait, and that the number of semaphores is the same.
[[nodiscard]] Result<void> check_update(const RawSemaphores& before, const RawSemaphores& after);
/// Checks that GraphExec::update may replace `before` with `after`: both have the same kind, kernel and dimensions, and
/// the same number, kinds and sizes of parameters.
[[nodiscard]] Result<void> check_update(const RawWork& before, const RawWork& after);
/// Checks that every dependency of the node with this index is an earlier node.
[[nodiscard]] Result<void> check_order(const RawNode& node, std::size_t index);

} // namespace warmgraph::backends
