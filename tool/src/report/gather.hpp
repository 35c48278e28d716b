// The contents of `warmgraph report`, as one JSON document: docs/json.md lists its keys.
#pragma once

#include <cstddef>

#include "context.hpp"

namespace warmgraph::tool {

/// How much of the graphs is drawn. Without limits many large graphs would make a page too large for browsers.
struct DrawingLimits {
    std::size_t boxes_a_graph = 120;
    std::size_t boxes_in_all = 4000; ///< graphs after this limit have no drawing
};

/// Gathers the document. `store`: null when the folder is missing or empty. Damaged entries are in the document with
/// their error.
[[nodiscard]] Result<Json> gather_report(const Context& context, const store::LocalStore* store,
                                         const DrawingLimits& limits = {});

} // namespace warmgraph::tool
