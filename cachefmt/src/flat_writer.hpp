// Header and graph -> flatbuffers (schema/entry.fbs). Checks nothing: codec.cpp does before, and the tests write
// hostile entries with it.
#pragma once

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

/// Deterministic, and no vector or string is shared, so that a reader can bound what it builds by what it reads.
[[nodiscard]] Bytes write_header(const EntryHeader& header);
[[nodiscard]] Bytes write_payload(const Graph& graph);

} // namespace warmgraph::cachefmt
