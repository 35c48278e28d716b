#include "graph/nodes/host_node.hpp"

namespace warmgraph::backends::cuda {

Result<void> add(AddCall& call, const RawHost& work)
{
    const CUDA_HOST_NODE_PARAMS native{work.function, work.data};
    return call("cuGraphAddHostNode", call.core.driver->cuGraphAddHostNode, &native);
}

Result<void> change(const ChangeCall& call, RawHost& before, const RawHost& after)
{
    if (before == after) return {};
    const CUDA_HOST_NODE_PARAMS native{after.function, after.data};
    auto set = call("cuGraphExecHostNodeSetParams", call.core.driver->cuGraphExecHostNodeSetParams, &native);
    if (set) before = after;
    return set;
}

Result<RawWork> read_host(const Driver& driver, CUgraphNode node)
{
    CUDA_HOST_NODE_PARAMS native{};
    auto got = driver.call("cuGraphHostNodeGetParams", driver.cuGraphHostNodeGetParams, node, &native);
    if (!got) return std::unexpected(got.error());
    return RawHost{native.fn, native.userData};
}

} // namespace warmgraph::backends::cuda
