// An entry as a person or a program reads it (`warmgraph show`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

enum class Section : std::uint8_t { header, guards, bindings, images, nodes };   ///< nodes: with their edges
[[nodiscard]] std::optional<Section> section_of(std::string_view name) noexcept; ///< by the name above
using Sections = std::set<Section>;                                              ///< empty: all of them

enum class Inks : std::uint8_t { none, terminal }; ///< terminal: ANSI colours

inline constexpr std::size_t k_text_columns = 100; ///< where no terminal says how wide it is

/// Aligned columns, a block for each section. A fact's value that would make its table wider than `columns` is cut with
/// "..." at its end, but none of at most 64 characters (a digest): to_json() has all of it.
[[nodiscard]] std::string to_readable(const Entry& entry, const Sections& only = {}, Inks inks = Inks::none,
                                      std::size_t columns = k_text_columns);
/// The same as one JSON object (keys in docs/format.md); format, kind and key are always there.
[[nodiscard]] std::string to_json(const Entry& entry, const Sections& only = {});
[[nodiscard]] std::string to_dot(const Entry& entry); ///< Graphviz: one box a node, labelled kernel, grid, slots

/// What a node is, for drawings. Names are as they are stored, nothing is quoted.
struct NodeText {
    std::string_view kind;          ///< "kernel", "copy", "event record"
    std::vector<std::string> lines; ///< the kernel's readable name or the kind, then grid and slots
};
/// REQUIRES: `node` is one of `graph`.
[[nodiscard]] NodeText to_text(const Node& node, const Graph& graph);

/// "opencl:0"-free short form of a tensor: "i32[1,64] align 128", strides when not contiguous, "aliases x".
[[nodiscard]] std::string to_text(const TensorSpec& tensor, const Guards& guards);

} // namespace warmgraph::cachefmt
