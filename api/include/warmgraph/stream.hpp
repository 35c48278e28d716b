// Streams, and the work that is enqueued in them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "warmgraph/device.hpp"

namespace warmgraph {

namespace backends {
class Event;
} // namespace backends

/// Three dimensions; a dimension that is left out is 1.
struct Extent {
    std::uint32_t x = 1, y = 1, z = 1;
};

/// Whether the groups of a launch may wait for each other, and when the launch may start. OpenCL supports only the
/// first value of each enum.
enum class Cooperation : std::uint8_t { none, grid };          ///< `grid`: all groups may synchronise with each other
enum class Start : std::uint8_t { after_previous, dependent }; ///< `dependent`: programmatic dependent launch

/// The geometry of a launch: `grid` groups of `block` work-items (in CUDA: thread blocks of threads).
struct Launch {
    Extent grid;
    Extent block;
    std::uint32_t shared_bytes{}; ///< dynamic shared memory, CUDA only (OpenCL: LocalMemory arguments)
    Extent cluster{0, 0, 0};      ///< groups in a cluster; 0: no clusters. CUDA only
    Cooperation cooperation{};
    Start start{};
};

/// A kernel argument: `bytes` bytes of work-group (shared) memory.
struct LocalMemory {
    std::uint64_t bytes = 0;
};

/// One kernel argument: an address, work-group memory, or a trivially copyable value passed by its bytes.
class KernelArg {
public:
    KernelArg(Address address) noexcept : m_value(address) {}                      // NOLINT: arguments convert
    KernelArg(const MemoryRef& memory) noexcept : m_value(memory.address) {}       // NOLINT
    KernelArg(const Buffer& buffer) noexcept : m_value(buffer.memory().address) {} // NOLINT
    KernelArg(LocalMemory local) noexcept : m_value(local) {}                      // NOLINT
    /// A value, passed as its bytes.
    explicit KernelArg(std::span<const std::byte> bytes) : m_value(std::vector<std::byte>(bytes.begin(), bytes.end()))
    {
    }
    template <class T>
        requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>)
    KernelArg(const T& value) : m_value(std::vector<std::byte>(sizeof value)) // NOLINT
    {
        std::memcpy(std::get<std::vector<std::byte>>(m_value).data(), &value, sizeof value);
    }
    [[nodiscard]] const std::variant<Address, LocalMemory, std::vector<std::byte>>& value() const noexcept
    {
        return m_value;
    }

private:
    std::variant<Address, LocalMemory, std::vector<std::byte>> m_value;
};

/// A point in the order of a stream.
using Event = std::shared_ptr<backends::Event>;

/// An in-order queue of work. Move-only. One thread at a time may use it.
class WARMGRAPH_API Stream {
public:
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    ~Stream();

    /// Compiles the program if it was not compiled yet (compile_failed: the text has the compiler's log), then enqueues
    /// one kernel.
    template <class... Args>
    void launch(const Program& program, std::string_view kernel, const Launch& geometry, const Args&... args)
    {
        const std::array<KernelArg, sizeof...(Args)> list{KernelArg(args)...};
        launch_list(program, kernel, geometry, list);
    }
    void launch_list(const Program& program, std::string_view kernel, const Launch& geometry,
                     std::span<const KernelArg> args);

    void copy(Address to, Address from, std::uint64_t bytes); ///< enqueues a copy of `bytes` bytes
    /// Enqueues a fill of `bytes` bytes with a pattern of 1, 2, 4, 8 or 16 bytes; `bytes` must be a multiple of the
    /// pattern's size.
    void fill(Address to, std::span<const std::byte> pattern, std::uint64_t bytes);
    void zero(Address to, std::uint64_t bytes); ///< enqueues a fill of `bytes` bytes with zeros

    [[nodiscard]] Event record();  ///< returns an event that comes after all work so far
    void wait(const Event& event); ///< orders later work of this stream after the event
    /// Returns whether this stream is being captured: enqueued work then goes into a graph and does not run.
    [[nodiscard]] bool is_capturing() const noexcept;
    void synchronize(); ///< blocks until the work is done; not_recordable inside a function that is being captured
    /// Returns the driver's handle (CUstream), for libraries that enqueue by themselves; null on OpenCL.
    [[nodiscard]] void* native() const noexcept;

    struct Impl; ///< opaque

private:
    friend class Device;
    friend class Recorder;
    friend class Function;
    friend struct StreamAccess;
    explicit Stream(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

/// Watches the work that its thread enqueues, by any library, as long as the watch lives. A program that captures makes
/// the watch once the capture has begun, and destroys it before the capture ends. Work in a stream that does not
/// capture runs at once and is missing in the graph; this class finds it. Destroy it in the thread that made it. The
/// constructor throws not_recordable, with the cure, if the backend can watch only after Device::prepare_recording. On
/// OpenCL the watch sees nothing.
class WARMGRAPH_API StreamWatch {
public:
    /// All work should go into `stream`, or into streams that wait for it.
    explicit StreamWatch(Stream& stream);
    StreamWatch(StreamWatch&&) noexcept;
    StreamWatch& operator=(StreamWatch&&) noexcept;
    ~StreamWatch();
    /// Returns a description of the first work that was enqueued in a wrong stream ("cuLaunchKernel in the legacy
    /// default stream"); "" if there is no such work so far.
    [[nodiscard]] std::string stray() const;

    struct Impl; ///< opaque

private:
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
