// Finds this process's registered modules that an entry needs, so that replays run them.
#pragma once

#include <memory>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

/// Returns for each of graph.images the registered module that it was taken from; null if there is none. Then the
/// host's writes to its variables reach the replays as they reach the function. not_recordable names the variable if a
/// module's variables changed since the recording (the function would compute something else), or if several modules
/// with variables fit.
[[nodiscard]] Result<std::vector<std::shared_ptr<backends::Module>>> find_registered_modules(
    backends::Device& device, const cachefmt::Graph& graph);

} // namespace warmgraph::replay
