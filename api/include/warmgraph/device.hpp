// Accelerators, their memory and their programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/backends/address.hpp"
#include "warmgraph/exception.hpp"
#include "warmgraph/export.hpp"

namespace warmgraph {

namespace backends {
class Device;
} // namespace backends

class Device;
class Stream;

/// Device memory, or page-locked host memory, owned. Move-only; freed when destroyed (the Device stays alive until
/// then).
class WARMGRAPH_API Buffer {
public:
    Buffer(Buffer&&) noexcept;
    Buffer& operator=(Buffer&&) noexcept;
    ~Buffer();

    [[nodiscard]] MemoryRef memory() const noexcept { return m_memory; }
    [[nodiscard]] std::uint64_t size() const noexcept { return m_memory.size; } ///< bytes
    operator MemoryRef() const noexcept { return m_memory; }                    // NOLINT: a buffer is its memory

    /// Blocking copies of exactly the span's bytes, from/to byte `offset`. They do not wait for enqueued work: first
    /// synchronise the stream that uses the buffer (Device::synchronize). invalid_argument when they do not fit;
    /// not_recordable inside a function that is being captured.
    void upload(std::span<const std::byte> bytes, std::uint64_t offset = 0);
    void download(std::span<std::byte> bytes, std::uint64_t offset = 0) const;

    template <class T>
    void write(std::span<const T> values)
    {
        upload(std::as_bytes(values));
    }
    template <class T>
    void write(const std::vector<T>& values)
    {
        upload(std::as_bytes(std::span{values}));
    }
    template <class T>
    [[nodiscard]] std::vector<T> read() const
    {
        std::vector<T> values(size() / sizeof(T));
        download(std::as_writable_bytes(std::span{values}));
        return values;
    }

private:
    friend class Device;
    Buffer(std::shared_ptr<backends::Device> device, MemoryRef memory) noexcept;
    std::shared_ptr<backends::Device> m_device;
    MemoryRef m_memory;
};

/// Kernel source with its build options. Cheap to make and to copy: it is compiled when a kernel is first launched
/// from it, so a process in which everything is replayed never compiles.
class WARMGRAPH_API Program {
public:
    [[nodiscard]] const std::string& name() const noexcept;
    [[nodiscard]] const std::string& source() const noexcept;
    [[nodiscard]] const std::string& options() const noexcept;

    struct Impl; ///< opaque

private:
    friend class Device;
    friend class Stream;
    friend struct ProgramAccess;
    explicit Program(std::shared_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
    std::shared_ptr<Impl> m_impl;
};

/// An accelerator: "opencl:0", "opencl", "opencl:<part of a name>", the same with "cuda". Cheap to copy.
class WARMGRAPH_API Device {
public:
    /// not_found lists the devices there are; unsupported for "cuda" in a build without that backend.
    explicit Device(std::string_view id = "opencl");

    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::string name() const;

    /// Device memory, contents undefined. invalid_argument for 0 bytes, out_of_memory.
    [[nodiscard]] Buffer allocate(std::uint64_t bytes) const;
    /// Page-locked host memory, which the device addresses too. unsupported on OpenCL.
    [[nodiscard]] Buffer allocate_host(std::uint64_t bytes) const;
    /// A buffer of exactly these values.
    template <class T>
    [[nodiscard]] Buffer upload(std::span<const T> values) const
    {
        Buffer buffer = allocate(values.size_bytes());
        buffer.upload(std::as_bytes(values));
        return buffer;
    }
    [[nodiscard]] Program program(std::string name, std::string source, std::string options = "") const;
    [[nodiscard]] Stream stream() const; ///< a new in-order stream
    /// One that somebody else made (CUstream; null is CUDA's legacy default stream): calls are enqueued behind his work.
    /// It stays his and must outlive the result. CUDA only.
    [[nodiscard]] Stream view_stream(void* native) const;
    /// The stream of calls that are made without one, shared by all Device objects of this device.
    [[nodiscard]] Stream default_stream() const;
    /// Blocks until the default stream's work (calls made without a stream) is done.
    void synchronize() const;

    /// Starts to keep the device code that the process loads, so that graphs with the kernels of other libraries can be
    /// recorded or adopted. Call it before those libraries load theirs; recording calls it too, which may be too late.
    /// Idempotent. not_recordable with the cure where it cannot (a profiler is attached to the process).
    void prepare_recording() const;
    /// The same for a backend ("cuda") before any of its devices is open: it loads the driver and makes no context.
    static void prepare_recording(std::string_view backend);
    /// Begins, on a thread of its own, what the first restore of this process would wait for (CUDA: 5 to 8 ms on an H200),
    /// and touches 6 MB of host memory for the calling thread, which is to restore (2 ms). For a process that will replay
    /// kernels of PyTorch or Triton: call it when the device is open, before weights are loaded. Restores wait for its end, so
    /// one that follows at once gains nothing. Once for a device; nothing is reported. A process that records or adopts does
    /// better without: the driver takes some 100 MB of device memory for it, and what lies on the host's stack looks like an
    /// address there more often.
    void warm_up() const;
    /// Declares that this process loaded the driver's `module` (CUmodule) from `image` (a cubin), and keeps it loaded
    /// for as long as this device is open. Recording then knows its code, whenever it was loaded. Replays run this
    /// module where an entry needs the same code and its variables hold what they held when it was recorded: what the
    /// host writes into them later reaches the replays as it reaches the function. Where they hold something else, the
    /// entry is refused. What is loaded already is loaded again by its next call. invalid_argument where the image is
    /// not the module's. CUDA only.
    void register_module(void* module, std::span<const std::byte> image) const;

    struct Impl; ///< opaque

private:
    friend class Cache;
    friend class Function;
    friend struct DeviceAccess;
    std::shared_ptr<Impl> m_impl;
};

/// Names a host function that recorded graphs may call: an entry stores the name, and a process that replays it
/// registers its own function under that name first. `function(data)` runs on a thread of the driver's, where no driver
/// call is allowed; both must stay valid as long as such graphs may run. invalid_argument: an empty or unprintable
/// name, a null function, a name that another function has. Thread-safe.
WARMGRAPH_API void register_host_function(std::string name, void (*function)(void*), void* data);

} // namespace warmgraph
