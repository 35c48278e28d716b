#include "device/recording.hpp"

#include "code/image_tracker.hpp"
#include "device/capture_pool.hpp"
#include "device/enqueue_watch.hpp"
#include "graph/graph_exec.hpp"
#include "graph/graph_reader.hpp"

namespace warmgraph::backends::cuda {

Result<void> CudaRecording::prepare_recording() { return ImageTracker::start(m_core.driver, m_core.options); }

bool CudaRecording::pause_recording() noexcept { return ImageTracker::pause(); }

Result<std::shared_ptr<void>> CudaRecording::hold_recording()
{
    if (auto held = ImageTracker::begin_hold(); !held) return std::unexpected(held.error());
    return std::shared_ptr<void>(this, [](void*) { ImageTracker::end_hold(); });
}

Result<std::unique_ptr<EnqueueWatch>> CudaRecording::watch_enqueues(Stream& stream)
{
    return cuda::watch_enqueues(m_core, static_cast<CUstream>(stream.native()));
}

Result<RawGraph> CudaRecording::read_graph(void* native)
{
    return cuda::read_graph(m_core, static_cast<CUgraph>(native));
}

Result<std::unique_ptr<GraphExec>> CudaRecording::instantiate_native(void* native)
{
    return CudaGraphExec::adopt(m_core, static_cast<CUgraph>(native));
}

Result<std::unique_ptr<GraphExec>> CudaRecording::instantiate_captured(const RawGraph& graph)
{
    return graph.native != nullptr ? CudaGraphExec::make_captured(m_core, graph) : m_device.instantiate(graph);
}

/// Finds the heap only if some code calls malloc: otherwise no pointer into the heap exists.
Result<std::optional<MemoryRef>> CudaRecording::device_heap()
{
    if (!ImageTracker::saw_malloc()) return std::nullopt;
    auto heap = m_heap.find();
    if (!heap) return within("find the heap of malloc in device code", heap.error());
    return *heap;
}

Result<std::shared_ptr<CapturePool>> CudaRecording::open_capture_pool(PoolMemory memory)
{
    return CudaCapturePool::open(m_core, memory);
}

bool CudaRecording::is_handle(std::uint64_t word) const noexcept
{
    // The driver looks the number up among the context's objects (NOTES.md). Any other answer means "maybe".
    const auto is_none = [](CUresult status) {
        return status == CUDA_ERROR_INVALID_VALUE || status == CUDA_ERROR_INVALID_HANDLE;
    };
    const Driver& driver = *m_core.driver;
    const CurrentContext current(m_core);
    CUDA_RESOURCE_DESC resource{};
    return !is_none(driver.status("cuTexObjectGetResourceDesc", driver.cuTexObjectGetResourceDesc, &resource, word)) ||
           !is_none(driver.status("cuSurfObjectGetResourceDesc", driver.cuSurfObjectGetResourceDesc, &resource, word));
}

std::optional<std::string> CudaRecording::host_memory_at(std::uint64_t flat, const HostMappings& mappings) const
{
    if (!m_core.reads_host_memory) return std::nullopt;
    auto name = mappings.at(flat); // first, because most words are in no mapping and asking the driver is slower
    // Skip the driver's own mappings: registers, and the ranges of its allocations.
    if (!name || name->starts_with("/dev/nvidia") || m_memory.is_known(flat)) return std::nullopt;
    return name->empty() ? "unnamed memory" : std::move(*name);
}

} // namespace warmgraph::backends::cuda
