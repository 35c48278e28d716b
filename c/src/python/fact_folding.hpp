// Facts that are too many for an entry: those below one path become one digest.
#pragma once

#include <cstdint>

#include "api.hpp"

namespace warmgraph::python {

/// As _long_facts.folded (python/warmgraph/torch/replay/_long_facts.py) folds them, into the dict `into`: by the longest paths, of at most
/// `deepest` steps, of which all have at most `most` letters. Throws Raised.
void fold_facts(const Api& python, Object* facts, std::uint64_t most, std::uint64_t deepest, Object* into);

} // namespace warmgraph::python
