#pragma once

namespace warmgraph::bench {

/// `cuda_replay` and `cuda_calls`: a restored graph against the driver's own.
void register_cuda_replay();
/// `cuda_restore`, `cuda_products` and `cuda_preload`: fresh processes, from the file to the first result. `cuda_miss`: what a
/// miss costs the caller.
void register_cuda_restore();

} // namespace warmgraph::bench
