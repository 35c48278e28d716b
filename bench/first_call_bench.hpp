#pragma once

#include <string>

namespace warmgraph::bench {

/// `first_call`: measures samples/llm on this backend, cold and warm.
void register_first_call(const std::string& backend);

} // namespace warmgraph::bench
