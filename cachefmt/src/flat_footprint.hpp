// What a verified flatbuffer will become, counted before anything is copied out of it. The sums are those of
// footprint().
#pragma once

#include <entry_generated.h>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

/// Numbers of nodes, edges, regions, parameters, and every node of a known kind with its table present.
[[nodiscard]] Result<void> check_counts(const flat::Payload& payload, const Limits& limits);

[[nodiscard]] std::uint64_t flat_footprint(const flat::Header& header);
[[nodiscard]] std::uint64_t flat_footprint(const flat::Payload& payload);

} // namespace warmgraph::cachefmt
