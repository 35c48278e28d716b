#pragma once

namespace warmgraph::bench {

/// `cuda_replay` and `cuda_calls`: compare a restored graph with the driver's own graph.
void register_cuda_replay();
/// `cuda_restore`, `cuda_products` and `cuda_preload`: measure the time from the file to the first result. `cuda_miss`:
/// measures the cost of a miss.
void register_cuda_restore();

} // namespace warmgraph::bench
