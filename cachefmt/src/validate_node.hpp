// The semantic check of one node. Messages start with what is wrong; validate() puts the node's name in front.
#pragma once

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] Result<void> validate_node(const Node& node, const Graph& graph, const Limits& limits);

/// The name of a kernel or of a module's variable: 1 to `longest` bytes of printable ASCII. `what` starts the message.
[[nodiscard]] Result<void> validate_symbol(std::string_view what, std::string_view name, std::size_t longest);

inline constexpr std::size_t k_symbol_max =
    65'536; ///< bytes of a kernel's or variable's name: CUTLASS's have more than 4,096

[[nodiscard]] Result<void> validate_kernel(const KernelNode& kernel, const Graph& graph, const Limits& limits);
[[nodiscard]] Result<void> validate_copy(const CopyNode& copy, const Graph& graph);
[[nodiscard]] Result<void> validate_fill(const FillNode& fill, const Graph& graph);
[[nodiscard]] Result<void> validate_semaphores(const SemaphoresNode& node, const Graph& graph, const Limits& limits);
[[nodiscard]] Result<void> validate_operations(const MemoryOperationsNode& node, const Graph& graph,
                                               const Limits& limits);

} // namespace warmgraph::cachefmt
