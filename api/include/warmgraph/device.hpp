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

/// Owns device memory or page-locked host memory. Move-only. The destructor frees the memory; the device stays open
/// until then.
class WARMGRAPH_API Buffer {
public:
    Buffer(Buffer&&) noexcept;
    Buffer& operator=(Buffer&&) noexcept;
    ~Buffer();

    [[nodiscard]] MemoryRef memory() const noexcept { return m_memory; }
    [[nodiscard]] std::uint64_t size() const noexcept { return m_memory.size; } ///< bytes
    operator MemoryRef() const noexcept { return m_memory; }                    // NOLINT: a buffer is its memory

    /// Copy exactly the span's bytes to or from byte `offset`, and block until that is done. Neither call waits for
    /// enqueued work: synchronise the stream that uses the buffer first (Device::synchronize). invalid_argument: the
    /// bytes do not fit. not_recordable: a function is being captured.
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

/// Kernel source with its build options. Cheap to make and to copy. It is compiled at the first launch of one of its
/// kernels, so a process that replays everything never compiles.
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

/// An accelerator. Cheap to copy. Thread-safe.
class WARMGRAPH_API Device {
public:
    /// Opens a device: "opencl:0", "opencl" (the first one), "opencl:<part of a name>", and the same with "cuda".
    /// not_found: no such device; the text lists the devices. unsupported: "cuda" in a build without that backend.
    explicit Device(std::string_view id = "opencl");

    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::string name() const;

    /// Allocates device memory; its contents are undefined. invalid_argument: 0 bytes. out_of_memory: the device has
    /// too little memory.
    [[nodiscard]] Buffer allocate(std::uint64_t bytes) const;
    /// Allocates page-locked host memory, which the device can address too. unsupported on OpenCL.
    [[nodiscard]] Buffer allocate_host(std::uint64_t bytes) const;
    /// Allocates a buffer and copies these values into it.
    template <class T>
    [[nodiscard]] Buffer upload(std::span<const T> values) const
    {
        Buffer buffer = allocate(values.size_bytes());
        buffer.upload(std::as_bytes(values));
        return buffer;
    }
    [[nodiscard]] Program program(std::string name, std::string source, std::string options = "") const;
    [[nodiscard]] Stream stream() const; ///< makes a new in-order stream
    /// Returns a view of a stream that another library made (CUstream; null is CUDA's legacy default stream). Calls are
    /// enqueued behind that library's work. The library keeps the stream, which must outlive the view. unsupported on
    /// OpenCL.
    [[nodiscard]] Stream view_stream(void* native) const;
    /// Returns the stream of calls that name no stream. All Device objects of this device share it.
    [[nodiscard]] Stream default_stream() const;
    /// Blocks until the default stream's work (calls made without a stream) is done.
    void synchronize() const;

    /// Starts to keep the device code that the process loads, so that graphs with kernels of other libraries can be
    /// recorded or adopted. Call it before those libraries load their code. Recording calls it too, which may be too
    /// late. Calling it again changes nothing. not_recordable: the code cannot be kept (a profiler is attached to the
    /// process); the text has the cure.
    void prepare_recording() const;
    /// Does the same for a backend ("cuda"), before one of its devices is open. It loads the driver and makes no
    /// context. not_found: no such backend.
    static void prepare_recording(std::string_view backend);
    /// Prepares the first restore of this process, on a thread of its own: it does the work that the restore would wait
    /// for (CUDA: 5 to 8 ms on an H200). Call it in the thread that will restore: the call also prepares 6 MB of host
    /// memory for that thread, which takes it 2 ms and saves the restore as much. A process that will replay kernels of
    /// PyTorch or Triton calls it once the device is open, before it loads weights. Restores wait until it is done, so
    /// a restore that follows at once gains nothing. A second call does nothing, and failures are not reported. A
    /// process that records or adopts should not call it: the driver takes about 100 MB of device memory for the
    /// warm-up, and leaves addresses on the host's stack, which a recording then finds in kernel parameters and must
    /// refuse or prove harmless.
    void warm_up() const;
    /// Declares that this process loaded the driver's `module` (CUmodule) from `image` (a cubin) and keeps it loaded
    /// while this device is open. Recording then knows the module's code, whenever the module was loaded. If an entry
    /// needs the same code, its replays run this module. So a replay reads the module's variables at each launch, as
    /// the function does. When the entry is restored, the variables must hold the values of the recording; otherwise
    /// the entry is refused. A function that is restored already is restored again at its next call. invalid_argument:
    /// the module was not loaded from this image. unsupported on OpenCL.
    void register_module(void* module, std::span<const std::byte> image) const;

    struct Impl; ///< opaque

private:
    friend class Cache;
    friend class Function;
    friend struct DeviceAccess;
    std::shared_ptr<Impl> m_impl;
};

/// Gives a name to a host function that recorded graphs may call. An entry stores the name; a process that replays the
/// entry registers its own function under that name first. `function(data)` runs on a thread of the driver, where no
/// driver call is allowed. `function` and `data` must stay valid as long as such graphs may run. invalid_argument: an
/// empty or unprintable name, a null function, or a name that another function has. Thread-safe.
WARMGRAPH_API void register_host_function(std::string name, void (*function)(void*), void* data);

} // namespace warmgraph
