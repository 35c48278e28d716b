// Short texts that messages, differences and the readable forms share. Names may come from hostile files, so everything
// printed goes through printable().
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] std::string_view to_string(RegionKind kind) noexcept; ///< "arena"; "unknown" if out of range
[[nodiscard]] std::string_view to_string(EntryKind kind) noexcept;
[[nodiscard]] std::string_view to_string(ParamKind kind) noexcept;
[[nodiscard]] std::string_view to_string(MemorySpace space) noexcept; ///< "device", "host"
[[nodiscard]] std::string_view node_kind(const Node& node) noexcept;  ///< "kernel", "copy", "event record"

[[nodiscard]] std::string to_text(const Dim3& dim);                      ///< "4,1,1"
[[nodiscard]] std::string to_text(const Slot& slot, const Graph& graph); ///< "kv + 1024"
[[nodiscard]] std::string to_text(const EdgeData& data); ///< "plain", "programmatic", "programmatic from launch"
[[nodiscard]] std::string node_name(const Node& node, std::size_t index); ///< "kernel rope (node 3)", "copy (node 4)"
[[nodiscard]] std::string hex(ByteView bytes, std::size_t most = 16);     ///< "0a0b…" cut after `most` bytes
/// Reads 1, 2, 4 or 8 bytes as a little-endian number; nullopt for other sizes.
[[nodiscard]] std::optional<std::uint64_t> number_in(ByteView bytes) noexcept;
/// The text of a parameter of unknown type: "128 (4 B)", "0x3f800000 (4 B, 1 as a float)", "24 B 00112233...".
[[nodiscard]] std::string word_text(ByteView bytes);
/// The value in its type: "17", "-1", "0.5", "true".
[[nodiscard]] std::string value_text(const ValueSpec& value);

/// Says how the fact's value is compared: "equal", "same or newer" (where a newer driver is accepted), "never".
[[nodiscard]] std::string_view compared_text(const Fact& fact) noexcept;

} // namespace warmgraph::cachefmt
