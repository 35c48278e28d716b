// Flatbuffers (schema/entry.fbs) -> header and graph. The bytes are hostile until the verifier, the counts and the
// memory that the result will take have been checked; what they mean is checked afterwards (validate).
#pragma once

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] Result<EntryHeader> read_header(ByteView bytes, const Limits& limits);
[[nodiscard]] Result<Graph> read_payload(ByteView bytes, const Limits& limits);

} // namespace warmgraph::cachefmt
