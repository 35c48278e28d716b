// Readable forms of an entry, for people and programs (`warmgraph show`).
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

enum class Section : std::uint8_t { header, guards, bindings, images, nodes };   ///< `nodes` includes their edges
[[nodiscard]] std::optional<Section> section_of(std::string_view name) noexcept; ///< nullopt if unknown
using Sections = std::set<Section>;                                              ///< empty means all

enum class Inks : std::uint8_t { none, terminal }; ///< terminal: ANSI colours

inline constexpr std::size_t k_text_columns = 100; ///< used when there is no terminal to give its width

/// Returns the entry as text in aligned columns, one block for each section. A fact's value is cut to "..." if it would
/// make its table wider than `columns`, but never below 64 characters (a digest); to_json() has the whole value.
[[nodiscard]] std::string to_readable(const Entry& entry, const Sections& only = {}, Inks inks = Inks::none,
                                      std::size_t columns = k_text_columns);
/// Returns one JSON object with the same data (keys in docs/format.md); format, kind and key are always included.
[[nodiscard]] std::string to_json(const Entry& entry, const Sections& only = {});
[[nodiscard]] std::string to_dot(const Entry& entry); ///< Graphviz: one box a node, with kernel, grid and slots

/// A node's texts for drawings. Names are as stored, without quoting.
struct NodeText {
    std::string_view kind;          ///< "kernel", "copy", "event record"
    std::vector<std::string> lines; ///< the kernel's readable name or the kind, then grid and slots
};
/// REQUIRES: `node` belongs to `graph`.
[[nodiscard]] NodeText to_text(const Node& node, const Graph& graph);

/// A short form of a tensor without its device: "i32[1,64] align 128", strides if not contiguous, "aliases x".
[[nodiscard]] std::string to_text(const TensorSpec& tensor, const Guards& guards);

} // namespace warmgraph::cachefmt
