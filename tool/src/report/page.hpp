// The report as one HTML page that needs nothing else: no network, no second file.
#pragma once

#include <string>

#include "context.hpp"

namespace warmgraph::tool {

/// page.html with the document in it. Whatever names the document holds, they are text there.
[[nodiscard]] std::string page_of(const Json& document);

} // namespace warmgraph::tool
