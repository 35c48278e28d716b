// What `warmgraph report` says, as one JSON document: docs/json.md lists its keys.
#pragma once

#include <cstddef>

#include "context.hpp"

namespace warmgraph::tool {

/// How much of the graphs is drawn. Without limits many large graphs would make a page that no browser opens.
struct DrawingLimits {
    std::size_t boxes_a_graph = 120;
    std::size_t boxes_in_all = 4000; ///< graphs that come later have no drawing
};

/// `store`: null where there is no folder, or an empty one. Damaged entries are in the document with their error.
[[nodiscard]] Result<Json> gather_report(const Context& context, const store::LocalStore* store,
                                         const DrawingLimits& limits = {});

} // namespace warmgraph::tool
