// The interface of a backend; each backend is a folder beside this one. tests/backends runs the conformance suite on
// each. This header is enough for replay; compiler.hpp is for compiling, recording.hpp for recording.
//
// Threads: a Device, and allocation and upload on it, may be used from any thread; a Stream and a GraphExec by one
// thread at a time. Lifetimes: Device outlives everything made from it. Nothing here throws.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/backends/memory_tally.hpp"
#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::backends {

/// Loaded device code.
class Module {
public:
    virtual ~Module() = default;
    /// Returns the portable binary that Device::load accepts in another process. The binary contains code for the
    /// launches so far, so call this after the warm-up run has finished (synchronize): PoCL compiles other launches
    /// when they first run (opencl/NOTES.md). The bytes stay the same until something new is launched.
    [[nodiscard]] virtual Result<Bytes> image() = 0;
    /// Digest of source and options if the module was compiled here; zero if it was loaded.
    [[nodiscard]] virtual Digest origin() const noexcept = 0;
    /// Returns a smaller image with only the named kernels, or the whole image if the backend cannot cut images. The
    /// caller must verify a smaller image, and store the whole one if that fails.
    [[nodiscard]] virtual Result<Bytes> image_of(std::span<const std::string> kernels)
    {
        static_cast<void>(kernels);
        return image();
    }
    /// Returns the number of arguments of a kernel; not_found lists the module's kernels.
    [[nodiscard]] virtual Result<std::uint32_t> param_count(const std::string& kernel) = 0;
    /// Returns the variables that differ from the image's initial contents, sorted by name. The device must be idle.
    [[nodiscard]] virtual Result<std::vector<cachefmt::ModuleVariable>> changed_variables()
    {
        return std::vector<cachefmt::ModuleVariable>{};
    }
    /// True if the module has variables that can be written.
    [[nodiscard]] virtual bool has_variables() const { return false; }
    /// True if the code may keep state in its own variables, even if only while it runs (a counter of finished groups).
    /// If true, two loaded modules of equal code stay separate; else one module serves for all.
    [[nodiscard]] virtual bool keeps_state() const { return false; }
    /// True if `word`, from a kernel's parameters or a variable, may be the address of a function that this code calls
    /// by address. Functions move in another process. Only a guess: any 8 bytes may look like an address.
    [[nodiscard]] virtual bool may_be_function(std::uint64_t word) const
    {
        static_cast<void>(word);
        return false;
    }
    /// True if the variable is a constant (`__constant__`) of a library (cuBLAS, cuDNN, PyTorch), which sets it once.
    /// False for variables of the program's own code.
    [[nodiscard]] virtual bool is_library_constant(const std::string& variable) const
    {
        static_cast<void>(variable);
        return false;
    }
    /// Gives the variables the contents `before`, an earlier result of changed_variables(). `now` is its present
    /// result: variables that are only in `now` get their initial contents. Blocking.
    [[nodiscard]] virtual Result<void> restore_variables(std::span<const cachefmt::ModuleVariable> before,
                                                         std::span<const cachefmt::ModuleVariable> now)
    {
        static_cast<void>(now);
        return write_variables(before);
    }
    /// Writes variables (blocking). not_found and invalid_argument (wrong size) name the variable.
    [[nodiscard]] virtual Result<void> write_variables(std::span<const cachefmt::ModuleVariable> variables)
    {
        if (variables.empty()) return {};
        return fail(ErrorCode::unsupported, "this backend's modules have no variables, '{}' is stored",
                    variables[0].name);
    }
};

/// A point in a stream's order.
class Event {
public:
    virtual ~Event() = default;
    /// The driver's handle (CUevent); 0 if a graph cannot hold the event.
    [[nodiscard]] virtual std::uint64_t native() const noexcept { return 0; }
    /// True if the work before the event has finished; also true for an event that was never recorded. Never blocks;
    /// any thread may call it. not_recordable if the event was recorded in a capture: that work does not run.
    [[nodiscard]] virtual Result<bool> is_done() = 0;

    /// Asks the driver to report the time when the work before the event finishes, for done_at(). False: the driver
    /// cannot do this, so only polling is_done() shows that the work has finished.
    [[nodiscard]] virtual bool keep_moment() noexcept { return false; }
    /// Returns the time when the work finished. nullopt: it has not finished, or the time is not kept.
    [[nodiscard]] virtual std::optional<std::chrono::steady_clock::time_point> done_at() const noexcept
    {
        return std::nullopt;
    }
};

/// An in-order queue. During a capture, enqueued work is recorded and does not run; capturing reads no memory.
class Stream {
public:
    /// Blocks until the stream's work is done, so that the process may exit afterwards (opencl/src/stream.hpp).
    virtual ~Stream() = default;

    /// invalid_argument: no such kernel, a wrong number or kind of parameters, a block over the device's limit.
    [[nodiscard]] virtual Result<void> launch(const RawKernel& kernel) = 0;
    [[nodiscard]] virtual Result<void> copy(const RawCopy& copy) = 0;
    [[nodiscard]] virtual Result<void> fill(const RawFill& fill) = 0;
    /// Checks a kernel, copy or fill ahead, with the errors of the calls above, and prepares the kernel. unsupported:
    /// other work, or a backend that cannot check. Not allowed during a capture.
    [[nodiscard]] virtual Result<void> check(const RawWork& work)
    {
        return fail(ErrorCode::unsupported, "a {} cannot be checked before it is enqueued", kind_of(work).name);
    }
    /// Enqueues work that check() accepted and that has not changed since; an empty node does nothing.
    [[nodiscard]] virtual Result<void> enqueue_checked(const RawWork& work);

    /// Records an event after all work so far, for another stream (of the same device) to wait for. As in CUDA, waiting
    /// in another stream for an event of a capturing stream makes that stream part of the capture (fork). Outside a
    /// capture any thread may record an event, to put a launch in another stream in order.
    [[nodiscard]] virtual Result<std::shared_ptr<Event>> record_event() = 0;
    [[nodiscard]] virtual Result<void> wait(const std::shared_ptr<Event>& event) = 0;

    /// Blocks until all work is done. not_recordable while capturing.
    [[nodiscard]] virtual Result<void> synchronize() = 0;

    /// Begins a capture. not_recordable if the stream is already capturing.
    [[nodiscard]] virtual Result<void> begin_capture() = 0;
    /// Ends the capture and returns the work since begin_capture, of this stream and of streams forked from it, or the
    /// first failure. not_recordable: a forked stream was not joined.
    [[nodiscard]] virtual Result<RawGraph> end_capture() = 0;
    [[nodiscard]] virtual bool is_capturing() const noexcept = 0;
    /// The driver's handle (CUstream), for libraries that enqueue directly; null if there is none.
    [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
    /// While the result lives, this thread may do the work of a first run (allocate, load code, make library handles),
    /// although a stream of other code captures. Null: no capture forbids such work. Use the result on one thread.
    [[nodiscard]] virtual std::shared_ptr<void> allow_first_run() { return nullptr; }
};

/// An instantiated graph.
class GraphExec {
public:
    virtual ~GraphExec() = default;
    /// Enqueues the whole graph in `stream` (not capturing). partly_launched: the launch failed after some nodes were
    /// enqueued; running the function instead would repeat their work.
    [[nodiscard]] virtual Result<void> launch(Stream& stream) noexcept = 0;
    /// Does launch() for callers that just checked that `stream` is not capturing: the driver is not asked again.
    [[nodiscard]] virtual Result<void> launch_uncaptured(Stream& stream) noexcept { return launch(stream); }
    /// Gives one node new parameters, addresses or sizes. invalid_argument if kind, kernel or dimensions change.
    /// Launches that are already enqueued keep the old ones.
    [[nodiscard]] virtual Result<void> update(std::uint32_t node, const RawWork& work) noexcept = 0;
    /// Does the one-time work of the first launch ahead, and blocks until it is done. Later updates do not undo it. A
    /// backend without such work returns success.
    [[nodiscard]] virtual Result<void> upload() noexcept { return {}; }
};

struct DeviceLimits {
    std::uint32_t memory_alignment =
        128; ///< bytes; an offset into a base must be a multiple of this (for OpenCL's sub-buffers; 1 on CUDA)
    std::uint64_t max_block = 1024; ///< work-items
    std::uint64_t local_memory = 48ULL * 1024;
    std::uint64_t memory = 0;
    bool keeps_running_execs = false; ///< a GraphExec may be destroyed while its launches run
    bool flat_addresses = false;      ///< every Address has k_flat_base, and any parameter word may be a pointer
};

class BulkMemory;
class Compiler;
class GraphBuilder;
class DeviceRecording;

class Device {
public:
    Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device();

    [[nodiscard]] virtual std::string id() const = 0;      ///< "opencl:0"
    [[nodiscard]] virtual std::string backend() const = 0; ///< Backend::name: "opencl"
    [[nodiscard]] virtual std::string name() const = 0;    ///< marketing name
    [[nodiscard]] virtual std::uint16_t ordinal() const noexcept = 0;
    [[nodiscard]] virtual const DeviceLimits& limits() const noexcept = 0;
    /// Returns the guard facts: "backend", "device.architecture", "device.units", "device.local_memory",
    /// "device.partition", "driver.version", "runtime.version" (must_match), "device.name" (advisory) ...
    [[nodiscard]] virtual std::vector<cachefmt::Fact> facts() const = 0;
    /// Says how graphs are replayed here and why, for `doctor`, e.g. "re-enqueue (command buffer 0.9.0 present, slower
    /// on PoCL)".
    [[nodiscard]] virtual std::string replay_mode() const = 0;
    /// Makes the device current on this thread while the result lives, for code that uses the thread's current device.
    /// Release it on the same thread, in reverse order, before the device is closed. Null if the backend needs nothing.
    [[nodiscard]] virtual std::shared_ptr<void> enter() const { return nullptr; }

    [[nodiscard]] virtual Result<MemoryRef> allocate(
        std::uint64_t size) = 0; ///< errors: out_of_memory; invalid_argument for size 0
    virtual void release(const MemoryRef& memory) noexcept = 0;
    /// Counts the memory from allocate(), and the memory behind shadows and decoys. The default counts nothing.
    [[nodiscard]] virtual MemoryTally& tally() noexcept { return m_tally; }
    /// Allocates page-locked host memory. upload() and download() work on it. Free it with release().
    [[nodiscard]] virtual Result<MemoryRef> allocate_host(std::uint64_t size)
    {
        return fail(ErrorCode::unsupported, "{} has no page-locked host memory for {} bytes", id(), size);
    }
    /// Returns the memory space of an address that the driver knows, even if other code allocated the memory.
    [[nodiscard]] virtual MemorySpace space_of(const Address& address) const noexcept
    {
        static_cast<void>(address);
        return MemorySpace::device;
    }
    /// Reserves an address range for captures only, which costs no memory (measured). Two ranges never touch. On
    /// devices with flat addresses, the upper 32 bits of its addresses differ from all other live shadows and from
    /// ordinary allocations, if the driver follows our hint. Free it with release().
    [[nodiscard]] virtual Result<MemoryRef> reserve_shadow(std::uint64_t size) = 0;
    [[nodiscard]] virtual Result<void> upload(const Address& to, ByteView bytes) = 0;              ///< blocking
    [[nodiscard]] virtual Result<void> download(std::span<std::byte> to, const Address& from) = 0; ///< blocking
    /// Operations on large memory in place; lives as long as the device. Thread-safe. The default uses upload() and
    /// download(), and is made at the first use.
    [[nodiscard]] virtual BulkMemory& bulk();
    /// Bytes that allocate() can still give, as reported by the driver. The default is the device's memory, or
    /// practically no limit if that is unknown.
    [[nodiscard]] virtual std::uint64_t free_memory() const
    {
        return limits().memory != 0 ? limits().memory : ~std::uint64_t{0};
    }

    /// Compiles source code. Replay does not need it.
    [[nodiscard]] virtual Compiler& compiler() = 0;
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> load(ByteView image) = 0;
    /// Declares that this process loaded the driver's `module` (CUmodule) from `image` (a cubin), and keeps it loaded
    /// while the device is open. Recording then knows its code even if it was loaded earlier, and replays use this
    /// module. invalid_argument: the image is invalid, or the module lacks its kernels.
    [[nodiscard]] virtual Result<void> register_module(void* module, ByteView image)
    {
        static_cast<void>(module);
        return fail(ErrorCode::unsupported, "{} cannot wrap modules that the driver loaded ({} bytes given)", id(),
                    image.size());
    }
    /// The modules from register_module().
    [[nodiscard]] virtual std::vector<std::shared_ptr<Module>> registered_modules() { return {}; }
    /// Variables of this code whose addresses the program requested from the driver: the program may access them
    /// between calls, unseen. Excludes registered modules and libraries that ask for their own variables. Thread-safe.
    [[nodiscard]] virtual std::vector<std::string> exposed_variables(ByteView image)
    {
        static_cast<void>(image);
        return {};
    }
    /// Counts all requests for variables' addresses. If the number changes, call exposed_variables() again.
    /// Thread-safe.
    [[nodiscard]] virtual std::uint64_t exposures() const noexcept { return 0; }
    /// Counts successful register_module() calls. If the number changes, replays may need a new binding. Thread-safe.
    [[nodiscard]] virtual std::uint64_t registrations() const noexcept { return 0; }
    [[nodiscard]] virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
    /// Wraps the caller's stream (CUstream; null is the legacy default stream), which must outlive the result.
    [[nodiscard]] virtual Result<std::unique_ptr<Stream>> view_stream(void* native)
    {
        static_cast<void>(native);
        return fail(ErrorCode::unsupported,
                    "{} cannot wrap streams that another library made: make one with Device::stream", id());
    }
    /// Makes an empty graph for `nodes` nodes. Use the builder in one thread and soon: it may hold a lock that others
    /// wait for.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphBuilder>> graph_builder(std::size_t nodes) = 0;
    /// Builds a whole graph through graph_builder().
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate(const RawGraph& graph);
    /// Creates an event that graphs can hold (Event::native).
    [[nodiscard]] virtual Result<std::shared_ptr<Event>> create_event()
    {
        return fail(ErrorCode::unsupported, "{} has no events that a graph can hold", id());
    }

    /// Starts a thread that does the one-time work of the first restore in this process, and touches heap memory of the
    /// calling thread, which will restore. load() and instantiate() wait for the end of this thread. The thread ends
    /// before the device is closed and before the process exits. Later calls do nothing.
    virtual void begin_warm_up() noexcept {}
    /// The device's part for recording; it lives as long as the device. Thread-safe. The default is made at the first
    /// use, finds nothing, and runs a captured graph like any other graph.
    [[nodiscard]] virtual DeviceRecording& recording();

private:
    MemoryTally m_tally;
    std::once_flag m_bulk_made, m_recording_made;
    std::unique_ptr<BulkMemory> m_bulk; ///< made at the first call of bulk()
    std::unique_ptr<DeviceRecording> m_recording;
};

/// A device that a backend could open.
struct DeviceInfo {
    std::string id; ///< "opencl:0"
    std::string name;
    std::string detail; ///< platform, versions
};

/// A library that a backend loads at its first use.
struct Library {
    std::string name;  ///< "NVRTC"
    std::string use;   ///< "compiles"
    std::string found; ///< the version that was found, or what is missing and the cure
};

/// name() is the part before the colon of a device's id: "opencl".
class Backend {
public:
    virtual ~Backend() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    /// Lists the devices; an empty list is not an error. If the runtime is missing or broken, the error contains the
    /// cure.
    [[nodiscard]] virtual Result<std::vector<DeviceInfo>> devices() = 0;
    /// Loads the libraries and reports them, for `doctor`.
    [[nodiscard]] virtual std::vector<Library> libraries() { return {}; }
    /// Opens a device. `selector` is an index, or part of a device's or platform's name (case-insensitive). not_found
    /// lists the devices.
    [[nodiscard]] virtual Result<std::shared_ptr<Device>> open(std::string_view selector) = 0;
    /// Does DeviceRecording::prepare_recording for all devices of this backend. None of them need be open.
    [[nodiscard]] virtual Result<void> prepare_recording() { return {}; }
};

} // namespace warmgraph::backends
