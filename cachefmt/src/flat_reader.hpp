// Flatbuffers (schema/entry.fbs) -> header and graph. The bytes may be hostile: the verifier, the counts and the memory
// for the result are checked first. validate() checks the meaning afterwards.
#pragma once

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] Result<EntryHeader> read_header(ByteView bytes, const Limits& limits);
[[nodiscard]] Result<Graph> read_payload(ByteView bytes, const Limits& limits);

} // namespace warmgraph::cachefmt
