// The beginning of an entry that HTTP and Redis keep beside it, so that the headers of all variants come in one round trip.
#pragma once

#include <cstddef>

#include "warmgraph/base/bytes.hpp"

namespace warmgraph::remote {

inline constexpr std::size_t k_most_head = 32ULL << 10; ///< bytes

/// The entry's header if it has one of at most k_most_head bytes, else at most the first 4 KiB.
[[nodiscard]] ByteView head_of_entry(ByteView entry);
/// True if these first bytes of an entry have its whole header.
[[nodiscard]] bool has_header(ByteView head);

} // namespace warmgraph::remote
