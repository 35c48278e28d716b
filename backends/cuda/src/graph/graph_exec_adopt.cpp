// Graphs of somebody else's: what a process that only replays is linked without.
#include "graph/graph_exec.hpp"
#include "graph/graph_reader.hpp"

namespace warmgraph::backends::cuda {

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::adopt(Core& core, CUgraph graph)
{
    if (graph == nullptr) return fail(ErrorCode::invalid_argument, "no graph to instantiate: the handle is null");
    // As the restored one that it is compared with; of a graph that cannot be read nothing is.
    const auto read = read_graph(core, graph);
    return instantiate_foreign(core, graph, read ? instantiate_flags_of(*read) : 0);
}

} // namespace warmgraph::backends::cuda
