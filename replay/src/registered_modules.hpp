// Finds the registered modules of this process that an entry needs, so that replays run these modules.
#pragma once

#include <memory>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

/// Returns for each of graph.images the registered module from which the image was taken, or null. Replays that run the
/// registered module see the host's writes to its variables, as the function does. Fails with not_recordable if a
/// module's variable changed since the recording (the message names it; the function would compute something else), or
/// if several modules with variables fit.
[[nodiscard]] Result<std::vector<std::shared_ptr<backends::Module>>> find_registered_modules(
    backends::Device& device, const cachefmt::Graph& graph);

} // namespace warmgraph::replay
