// What recording asks a device, and replaying never does: whose an address is, what a thread enqueues, what the driver
// captured.
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

/// In the message of a refusal for code that was loaded while recording was paused: another process that does not pause
/// can record it.
inline constexpr std::string_view k_loaded_in_pause = "while recording was paused";

/// A part of a device, which outlives it. Thread-safe.
class Recording {
public:
    explicit Recording(Device& device) noexcept : m_device(device) {}
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    virtual ~Recording() = default;

    /// Starts to keep the device code that the process loads, so that graphs with other libraries' kernels can be
    /// recorded. Called before a function's warm-up; earlier is better (modules loaded before cannot be recorded).
    /// Idempotent. not_recordable with the cure where it cannot (a profiler is attached).
    [[nodiscard]] virtual Result<void> prepare_recording() { return {}; }
    /// Ends to keep it, for the whole process, until prepare_recording, hold_recording or watch_enqueues begin again: what
    /// keeps it makes each launch dearer, also those of others. Code that is loaded meanwhile is unknown then, and so is
    /// code that could have been unloaded meanwhile. False: nothing is kept, or somebody holds or watches.
    [[nodiscard]] virtual bool pause_recording() noexcept { return false; }
    /// It is kept for as long as the result lives, where it was kept before. Errors as prepare_recording().
    [[nodiscard]] virtual Result<std::shared_ptr<void>> hold_recording() { return std::shared_ptr<void>{}; }
    /// Watches what this thread enqueues, `stream` being where it belongs, for as long as the result lives. Where a
    /// backend cannot watch, the result sees nothing. not_recordable with the cure where it could but is not ready
    /// (prepare_recording).
    [[nodiscard]] virtual Result<std::unique_ptr<EnqueueWatch>> watch_enqueues(Stream& stream)
    {
        static_cast<void>(stream);
        return std::make_unique<EnqueueWatch>();
    }
    /// Reads a graph that somebody else captured (CUgraph), which is left as it is. not_recordable names what it cannot
    /// hold.
    [[nodiscard]] virtual Result<RawGraph> read_graph(void* native)
    {
        static_cast<void>(native);
        return fail(ErrorCode::unsupported, "{} cannot adopt graphs", m_device.id());
    }
    /// Instantiates somebody else's graph as it is, to compare with. update() of it is unsupported.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphExec>> instantiate_native(void* native)
    {
        static_cast<void>(native);
        return fail(ErrorCode::unsupported, "{} cannot run other graphs", m_device.id());
    }
    /// The very graph that the driver captured, with the process's own code, whatever was done to its nodes since; the
    /// result keeps what it needs. Where there is none (RawGraph::native), as Device::instantiate. update() of it may be
    /// unsupported.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphExec>> instantiate_captured(const RawGraph& graph)
    {
        return m_device.instantiate(graph);
    }

    /// The live allocation around a flat address, whoever made it; nullopt where there is none. Backends without flat
    /// addresses have none.
    [[nodiscard]] virtual std::optional<MemoryRef> allocation_at(std::uint64_t flat) const noexcept
    {
        static_cast<void>(flat);
        return std::nullopt;
    }
    /// Whether a live object of this process that a kernel names by a number of 8 bytes (a texture, a surface) has this
    /// one: another process gives it another number. Numbers are small, so that it is a suspicion.
    [[nodiscard]] virtual bool is_handle(std::uint64_t word) const noexcept
    {
        static_cast<void>(word);
        return false;
    }
    /// Whether it is managed memory, which moves between host and device as it is used. False where nothing is known of
    /// it.
    [[nodiscard]] virtual bool is_managed(const Address& address) const noexcept
    {
        static_cast<void>(address);
        return false;
    }
    /// Ordinary host memory of this process around a flat address that kernels of this device can read, by its name
    /// ("[heap]", a file, "memory without a name"); nullopt where there is none, where the driver knows the memory
    /// (allocation_at, shadows), and on devices that cannot read it. `mappings` are the process's, read before: who
    /// asks often reads them once.
    [[nodiscard]] virtual std::optional<std::string> host_memory_at(std::uint64_t flat,
                                                                    const HostMappings& mappings) const
    {
        static_cast<void>(flat);
        static_cast<void>(mappings);
        return std::nullopt;
    }
    /// As they are now.
    [[nodiscard]] std::optional<std::string> host_memory_at(std::uint64_t flat) const
    {
        return host_memory_at(flat, HostMappings::read());
    }
    /// A range around the heap that device code allocates from by itself, which no driver's allocation is; nullopt
    /// where no code that the process loaded does so. An error: it could not be found.
    [[nodiscard]] virtual Result<std::optional<MemoryRef>> device_heap() { return std::optional<MemoryRef>{}; }
    /// Addresses over little memory, which a kernel may read and write: what it writes at one shows at others. For
    /// trials of what may be an address. Device::release() it. unsupported where there are no flat addresses.
    [[nodiscard]] virtual Result<MemoryRef> reserve_decoy(std::uint64_t size)
    {
        return fail(ErrorCode::unsupported, "{} has no decoys ({} bytes were asked for)", m_device.id(), size);
    }
    /// Page-locked host memory with addresses as Device::reserve_shadow gives them. It takes memory, and may be read and written. Device::release() it.
    [[nodiscard]] virtual Result<MemoryRef> reserve_host_shadow(std::uint64_t size)
    {
        return m_device.allocate_host(size);
    }

protected:
    Device& m_device; // NOLINT: for those who derive
};

} // namespace warmgraph::backends
