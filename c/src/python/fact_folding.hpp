// Folds facts that are too many for an entry: all facts below one path become one digest.
#pragma once

#include <cstdint>

#include "api.hpp"

namespace warmgraph::python {

/// Folds facts into the dict `into`, as _long_facts.folded (python/warmgraph/torch/replay/_long_facts.py) does. It
/// takes the longest paths, of at most `deepest` steps, with which all facts have at most `most` letters. Throws
/// Raised.
void fold_facts(const Api& python, Object* facts, std::uint64_t most, std::uint64_t deepest, Object* into);

} // namespace warmgraph::python
