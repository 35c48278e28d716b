// The part of a device that only recording needs: owners of addresses, enqueued work, captured graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/enqueue_watch.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::backends {

/// Text in the refusal of code that was loaded while recording was paused. A process without pauses can record this
/// code.
inline constexpr std::string_view k_loaded_in_pause = "while recording was paused";

/// Memory for the pool of one capture that a framework makes. The segments lie in one range of addresses, each behind
/// the one before it. A framework's allocator prefers the free block with the lowest address, so with such segments it
/// chooses the same blocks in each capture of the same work. Thread-safe.
class CapturePool {
public:
    CapturePool() = default;
    CapturePool(const CapturePool&) = delete;
    CapturePool& operator=(const CapturePool&) = delete;
    virtual ~CapturePool() = default;
    /// Returns the address of a new segment. Its size is rounded up to the device's unit. May be called while a stream
    /// captures. out_of_memory: no memory or no addresses are left.
    [[nodiscard]] virtual Result<std::uint64_t> allocate(std::uint64_t bytes) = 0;
    /// Frees a segment of this pool. Its addresses are not used again.
    virtual void release(std::uint64_t start) noexcept = 0;
};

enum class PoolMemory : std::uint8_t {
    own,    ///< each segment has memory of its own
    shared, ///< all segments share a little memory: for a capture that never runs
};

/// A part of a device; the device outlives it. Thread-safe.
class DeviceRecording {
public:
    explicit DeviceRecording(Device& device) noexcept : m_device(device) {}
    DeviceRecording(const DeviceRecording&) = delete;
    DeviceRecording& operator=(const DeviceRecording&) = delete;
    virtual ~DeviceRecording() = default;

    /// Starts to keep the device code that the process loads, so that graphs with kernels of other libraries can be
    /// recorded. Call it before a function's warm-up, the earlier the better: modules loaded before cannot be recorded.
    /// Later calls do nothing. not_recordable, with the cure: the code cannot be kept (a profiler is attached).
    [[nodiscard]] virtual Result<void> prepare_recording() { return {}; }
    /// Stops keeping device code in the whole process, because it slows down every launch. prepare_recording,
    /// hold_recording and watch_enqueues start it again. Code that is loaded, or could be unloaded, during the pause is
    /// unknown afterwards. False: nothing was kept, or a hold or a watch is active.
    [[nodiscard]] virtual bool pause_recording() noexcept { return false; }
    /// If code is kept now, prevents pauses while the result lives. Errors as for prepare_recording().
    [[nodiscard]] virtual Result<std::shared_ptr<void>> hold_recording() { return std::shared_ptr<void>{}; }
    /// Watches the work that this thread enqueues while the result lives; the work should go to `stream`. On a backend
    /// that cannot watch, the result sees nothing. not_recordable, with the cure: the backend is not ready
    /// (prepare_recording).
    [[nodiscard]] virtual Result<std::unique_ptr<EnqueueWatch>> watch_enqueues(Stream& stream)
    {
        static_cast<void>(stream);
        return std::make_unique<EnqueueWatch>();
    }
    /// Reads a graph (CUgraph) that other code captured, without changing it. not_recordable: the graph has unsupported
    /// content, which the message names.
    [[nodiscard]] virtual Result<RawGraph> read_graph(void* native)
    {
        static_cast<void>(native);
        return fail(ErrorCode::unsupported, "{} cannot adopt graphs that another library captured", m_device.id());
    }
    /// Instantiates a graph of other code unchanged, for comparison. The result cannot be updated: update() is
    /// unsupported.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphExec>> instantiate_native(void* native)
    {
        static_cast<void>(native);
        return fail(ErrorCode::unsupported, "{} cannot run graphs that another library captured", m_device.id());
    }
    /// Instantiates the driver's own captured graph, with the process's own code, even if `graph`'s nodes were changed
    /// since. The result keeps its resources alive. Without RawGraph::native it does the same as Device::instantiate.
    /// The result's update() may be unsupported.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphExec>> instantiate_captured(const RawGraph& graph)
    {
        return m_device.instantiate(graph);
    }

    /// The live allocation, from any allocator, that contains a flat address; nullopt if there is none or the backend
    /// has no flat addresses.
    [[nodiscard]] virtual std::optional<MemoryRef> allocation_at(std::uint64_t flat) const noexcept
    {
        static_cast<void>(flat);
        return std::nullopt;
    }
    /// True if `word` is the number of a live object (a texture, a surface) of this process. Kernels name such objects
    /// by 8-byte numbers, which differ in another process. Only a guess, because these numbers are small.
    [[nodiscard]] virtual bool is_handle(std::uint64_t word) const noexcept
    {
        static_cast<void>(word);
        return false;
    }
    /// True for managed memory, which moves between host and device during use. False if unknown.
    [[nodiscard]] virtual bool is_managed(const Address& address) const noexcept
    {
        static_cast<void>(address);
        return false;
    }
    /// The name ("[heap]", a file, "memory without a name") of ordinary host memory at a flat address that kernels of
    /// this device can read. nullopt: no such memory, memory that the driver knows (allocation_at, shadows), or a
    /// device that cannot read it. `mappings` describe this process; pass the same ones for many calls.
    [[nodiscard]] virtual std::optional<std::string> host_memory_at(std::uint64_t flat,
                                                                    const HostMappings& mappings) const
    {
        static_cast<void>(flat);
        static_cast<void>(mappings);
        return std::nullopt;
    }
    /// Does the same with mappings that are read now.
    [[nodiscard]] std::optional<std::string> host_memory_at(std::uint64_t flat) const
    {
        return host_memory_at(flat, HostMappings::read());
    }
    /// Returns a range that contains the heap from which device code allocates (malloc); allocation_at() does not know
    /// this heap. nullopt if no loaded code uses the heap. An error if the range cannot be found.
    [[nodiscard]] virtual Result<std::optional<MemoryRef>> device_heap() { return std::optional<MemoryRef>{}; }
    /// Reserves many addresses that share little memory, for trials with possible addresses: kernels may access them,
    /// and a write at one address shows at others. Free it with Device::release(). unsupported without flat addresses.
    [[nodiscard]] virtual Result<MemoryRef> reserve_decoy(std::uint64_t size)
    {
        return fail(ErrorCode::unsupported, "{} cannot reserve test addresses ({} bytes were requested)", m_device.id(),
                    size);
    }
    /// Makes a pool, whose addresses differ from those of all other pools. The device outlives the pool. unsupported: the
    /// device has no virtual addresses that a program can map.
    [[nodiscard]] virtual Result<std::shared_ptr<CapturePool>> open_capture_pool(PoolMemory memory)
    {
        static_cast<void>(memory);
        return fail(ErrorCode::unsupported, "{} has no memory pools for captures", m_device.id());
    }
    /// Makes usable page-locked host memory at addresses like those of reserve_shadow. Free it with Device::release().
    [[nodiscard]] virtual Result<MemoryRef> reserve_host_shadow(std::uint64_t size)
    {
        return m_device.allocate_host(size);
    }

protected:
    Device& m_device; // NOLINT: for derived classes
};

} // namespace warmgraph::backends
