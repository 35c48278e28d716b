#include "warmgraph/backends/device.hpp"

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/graph_builder.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends {

Result<void> Stream::enqueue_checked(const RawWork& work)
{
    if (const auto* const kernel = std::get_if<RawKernel>(&work)) return launch(*kernel);
    if (const auto* const one = std::get_if<RawCopy>(&work)) return copy(*one);
    if (const auto* const one = std::get_if<RawFill>(&work)) return fill(*one);
    if (std::holds_alternative<RawEmpty>(work)) return {};
    return check(work);
}

Device::Device() = default;
Device::~Device() = default;

BulkMemory& Device::bulk()
{
    std::call_once(m_bulk_made, [this] { m_bulk = std::make_unique<BulkMemory>(*this); });
    return *m_bulk;
}

DeviceRecording& Device::recording()
{
    std::call_once(m_recording_made, [this] { m_recording = std::make_unique<DeviceRecording>(*this); });
    return *m_recording;
}

Result<std::unique_ptr<GraphExec>> Device::instantiate(const RawGraph& graph)
{
    auto builder = graph_builder(graph.nodes.size());
    if (!builder) return std::unexpected(builder.error());
    for (const RawNode& node : graph.nodes)
        if (auto added = (*builder)->add(node); !added) return std::unexpected(added.error());
    return (*builder)->instantiate();
}

} // namespace warmgraph::backends
