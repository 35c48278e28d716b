// Checks the meaning of a header: guards in canonical form, known dtypes, extents that do not overflow.
#pragma once

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] Result<void> validate_header(const EntryHeader& header, const Limits& limits);

} // namespace warmgraph::cachefmt
