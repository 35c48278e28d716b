// The report as one HTML page that needs no network and no other file.
#pragma once

#include <string>

#include "context.hpp"

namespace warmgraph::tool {

/// Returns page.html with the document in it. Names in the document stay text, whatever they contain.
[[nodiscard]] std::string page_of(const Json& document);

} // namespace warmgraph::tool
