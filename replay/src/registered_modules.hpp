// Replays run this process's registered modules where they are what the entry needs.
#pragma once

#include <memory>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

/// For each of graph.images the process's registered module that it was taken from, null where there is none. What the host
/// writes into its variables then reaches the replays as it reaches the function itself. not_recordable, naming the
/// variable, where one is there and its variables hold something else than when it was recorded (the function would
/// compute something else), or where several with variables would do.
[[nodiscard]] Result<std::vector<std::shared_ptr<backends::Module>>> find_registered_modules(
    backends::Device& device, const cachefmt::Graph& graph);

} // namespace warmgraph::replay
