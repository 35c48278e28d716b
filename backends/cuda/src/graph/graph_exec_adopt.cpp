// Instantiates graphs of other code. A library that only replays does not link this file.
#include "graph/graph_exec.hpp"
#include "graph/graph_reader.hpp"

namespace warmgraph::backends::cuda {

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::adopt(Core& core, CUgraph graph)
{
    if (graph == nullptr) return fail(ErrorCode::invalid_argument, "no graph to instantiate: the handle is null");
    // Use the flags that a restored graph with these nodes gets, because both are compared; no flags for a graph that
    // cannot be read.
    const auto read = read_graph(core, graph);
    return instantiate_foreign(core, graph, read ? instantiate_flags_of(*read) : 0);
}

} // namespace warmgraph::backends::cuda
