// An entry as a person or a program reads it (`warmgraph show`).
#pragma once

#include <string>

#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] std::string to_readable(const Entry& entry); ///< header, guards, bindings, nodes, edges, images as text
[[nodiscard]] std::string to_json(const Entry& entry);     ///< the same, one JSON object (keys in docs/format.md)
[[nodiscard]] std::string to_dot(const Entry& entry);      ///< Graphviz: one box a node, labelled kernel, grid, slots

/// "opencl:0"-free short form of a tensor: "i32[1,64] align 128", strides when not contiguous, "aliases x".
[[nodiscard]] std::string to_text(const TensorSpec& tensor, const Guards& guards);

} // namespace warmgraph::cachefmt
