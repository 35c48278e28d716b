// Boxes of memory (slices of rows of bytes) that copies, fills and memory operations access. A box must lie in its
// region.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

struct Box {
    std::uint64_t size = 0; ///< bytes of one row
    std::uint64_t rows = 1;
    std::uint64_t slices = 1;
    Pitch pitch;
};

/// The number of bytes from the first to the last; nullopt on overflow of 64 bits.
[[nodiscard]] std::optional<std::uint64_t> extent(const Box& box);

/// Checks that the box is valid and lies in its region when it starts at `end`.
[[nodiscard]] Result<void> check_end(std::string_view what, const Slot& end, const Box& box, const Graph& graph);
/// REQUIRES: check_end holds.
[[nodiscard]] Result<void> check_writable(const Slot& destination, const Graph& graph);

[[nodiscard]] std::string shape_text(const Box& box);  ///< "4 rows of 256 bytes"
[[nodiscard]] std::string box_size(const Box& box);    ///< "1.0 KiB", "4 rows of 256 B", "2 slices of 4 rows of 256 B"
[[nodiscard]] std::string to_text(const Pitch& pitch); ///< "512", "512/2048"
/// Returns e.g. "kv + 1024 (host) pitch 512".
[[nodiscard]] std::string end_text(const Slot& end, const Pitch& pitch, MemorySpace space, const Graph& graph);

} // namespace warmgraph::cachefmt
