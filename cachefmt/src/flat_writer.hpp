// Header and graph -> flatbuffers (schema/entry.fbs). Checks nothing: codec.cpp checks before, and tests write hostile
// entries with it.
#pragma once

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::cachefmt {

/// Deterministic. It shares no vector or string, so that the input's size bounds a reader's memory.
[[nodiscard]] Bytes write_header(const EntryHeader& header);
[[nodiscard]] Bytes write_payload(const Graph& graph);

} // namespace warmgraph::cachefmt
