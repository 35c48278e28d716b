#include "graph/nodes/event_nodes.hpp"

namespace warmgraph::backends::cuda {
namespace {

/// Converts a number of a raw graph to the driver's event.
CUevent event_of(std::uint64_t handle) noexcept
{
    return reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(handle)); // NOLINT: a handle stored as a number
}

template <class Work>
Result<RawWork> read_event(const Driver& driver, const char* name, CUresult (*get)(CUgraphNode, CUevent*),
                           CUgraphNode node)
{
    CUevent event = nullptr;
    if (auto got = driver.call(name, get, node, &event); !got) return std::unexpected(got.error());
    return Work{reinterpret_cast<std::uintptr_t>(event)};
}

} // namespace

Result<void> add(AddCall& call, const RawEventRecord& work)
{
    return call("cuGraphAddEventRecordNode", call.core.driver->cuGraphAddEventRecordNode, event_of(work.event));
}

Result<void> add(AddCall& call, const RawEventWait& work)
{
    return call("cuGraphAddEventWaitNode", call.core.driver->cuGraphAddEventWaitNode, event_of(work.event));
}

Result<void> change(const ChangeCall& call, RawEventRecord& before, const RawEventRecord& after)
{
    if (before == after) return {};
    auto set = call("cuGraphExecEventRecordNodeSetEvent", call.core.driver->cuGraphExecEventRecordNodeSetEvent,
                    event_of(after.event));
    if (set) before = after;
    return set;
}

Result<void> change(const ChangeCall& call, RawEventWait& before, const RawEventWait& after)
{
    if (before == after) return {};
    auto set = call("cuGraphExecEventWaitNodeSetEvent", call.core.driver->cuGraphExecEventWaitNodeSetEvent,
                    event_of(after.event));
    if (set) before = after;
    return set;
}

Result<RawWork> read_event_record(const Driver& driver, CUgraphNode node)
{
    return read_event<RawEventRecord>(driver, "cuGraphEventRecordNodeGetEvent", driver.cuGraphEventRecordNodeGetEvent,
                                      node);
}

Result<RawWork> read_event_wait(const Driver& driver, CUgraphNode node)
{
    return read_event<RawEventWait>(driver, "cuGraphEventWaitNodeGetEvent", driver.cuGraphEventWaitNodeGetEvent, node);
}

} // namespace warmgraph::backends::cuda
