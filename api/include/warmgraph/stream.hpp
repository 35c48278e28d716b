// Streams and what is enqueued in them.
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

/// Three dimensions; those left out are 1.
struct Extent {
    std::uint32_t x = 1, y = 1, z = 1;
};

/// How a launch relates to its own groups and to the work before it. On OpenCL all but the first are unsupported.
enum class Cooperation : std::uint8_t { none, grid };          ///< grid: all groups may synchronise with each other
enum class Start : std::uint8_t { after_previous, dependent }; ///< dependent: programmatic dependent launch

/// Work-group geometry: `grid` groups of `block` work-items (CUDA's thread blocks of threads).
struct Launch {
    Extent grid;
    Extent block;
    std::uint32_t shared_bytes{}; ///< dynamic shared memory, CUDA only (OpenCL: LocalMemory arguments)
    Extent cluster{0, 0, 0};      ///< groups of a cluster; 0: no clusters. CUDA only
    Cooperation cooperation{};
    Start start{};
};

/// `n` bytes of work-group (shared) memory as a kernel argument.
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
    /// A value given by its bytes.
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

/// A point in a stream's order.
using Event = std::shared_ptr<backends::Event>;

/// An in-order queue of work.
class WARMGRAPH_API Stream {
public:
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    ~Stream();

    /// Compiles the program when it was not yet (compile_failed carries the log), then enqueues one kernel.
    template <class... Args>
    void launch(const Program& program, std::string_view kernel, const Launch& geometry, const Args&... args)
    {
        const std::array<KernelArg, sizeof...(Args)> list{KernelArg(args)...};
        launch_list(program, kernel, geometry, list);
    }
    void launch_list(const Program& program, std::string_view kernel, const Launch& geometry,
                     std::span<const KernelArg> args);

    void copy(Address to, Address from, std::uint64_t bytes);
    /// `pattern`: 1, 2, 4, 8 or 16 bytes; `bytes` is a multiple of it.
    void fill(Address to, std::span<const std::byte> pattern, std::uint64_t bytes);
    void zero(Address to, std::uint64_t bytes);

    [[nodiscard]] Event record();  ///< an event after all work so far
    void wait(const Event& event); ///< later work of this stream comes after the event
    /// Whether somebody captures what is enqueued in it.
    [[nodiscard]] bool is_capturing() const noexcept;
    void synchronize(); ///< blocks; not_recordable inside a function that is being captured
    /// The driver's handle (CUstream), for libraries that enqueue by themselves; null on OpenCL.
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

/// Watches what the thread that makes it enqueues, for as long as it lives, by any library. For programs that capture: make it
/// once the capture has begun and destroy it before its end. What lies in a stream that does not capture has run at once,
/// and is missing in the graph. Destroy it in the thread that made it. not_recordable with the cure where the backend could
/// watch and cannot yet (Device::prepare_recording); OpenCL sees nothing.
class WARMGRAPH_API StreamWatch {
public:
    /// `stream` is where the work belongs, and in streams that wait for it.
    explicit StreamWatch(Stream& stream);
    StreamWatch(StreamWatch&&) noexcept;
    StreamWatch& operator=(StreamWatch&&) noexcept;
    ~StreamWatch();
    /// The first work that lies elsewhere, "cuLaunchKernel in the legacy default stream"; empty: none so far.
    [[nodiscard]] std::string stray() const;

    struct Impl; ///< opaque

private:
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
