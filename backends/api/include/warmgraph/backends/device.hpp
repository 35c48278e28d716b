// What a backend implements: one folder beside this one. The conformance suite (tests/backends) runs against each.
// Here is what a replay needs; compiler.hpp and recording.hpp are the parts for those who compile and who record.
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

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::backends {

/// Loaded device code.
class Module {
public:
    virtual ~Module() = default;
    /// The portable binary that Device::load accepts in another process. Take it after the warm-up run has finished
    /// (synchronize): it holds what was launched so far ready to run, and PoCL compiles the rest at its first launch
    /// (opencl/NOTES.md). Same bytes at every call until something new is launched.
    [[nodiscard]] virtual Result<Bytes> image() = 0;
    /// Digest of source and options when it was compiled here; zero when it was loaded.
    [[nodiscard]] virtual Digest origin() const noexcept = 0;
    /// The image without the kernels that are not named: what a graph needs of it. Where a backend cannot cut, the
    /// whole. Verification must bless it; where it does not, the whole is stored.
    [[nodiscard]] virtual Result<Bytes> image_of(std::span<const std::string> kernels)
    {
        static_cast<void>(kernels);
        return image();
    }
    /// Number of arguments of a kernel; not_found names the kernels there are.
    [[nodiscard]] virtual Result<std::uint32_t> param_count(const std::string& kernel) = 0;
    /// Variables whose contents differ now from the image's initial ones, by name. The device must be idle.
    [[nodiscard]] virtual Result<std::vector<cachefmt::ModuleVariable>> changed_variables()
    {
        return std::vector<cachefmt::ModuleVariable>{};
    }
    /// Whether there is anything that could be written.
    [[nodiscard]] virtual bool has_variables() const { return false; }
    /// Whether its code may keep something in variables of its own, if only while it runs (a counter of finished
    /// groups): modules of equal code then are as many as were loaded, else one does for all.
    [[nodiscard]] virtual bool keeps_state() const { return false; }
    /// Whether a number in a kernel's parameters or in a variable may be the address of a function that this code calls
    /// by it: a new process has its functions elsewhere. A suspicion, since 8 bytes can mean anything.
    [[nodiscard]] virtual bool may_be_function(std::uint64_t word) const
    {
        static_cast<void>(word);
        return false;
    }
    /// Whether the variable is a constant (`__constant__`) of code that one of the device's own libraries brought
    /// (cuBLAS, cuDNN, PyTorch), and neither this program nor a library of its own: those fill it once and let it be.
    [[nodiscard]] virtual bool is_library_constant(const std::string& variable) const
    {
        static_cast<void>(variable);
        return false;
    }
    /// Gives the variables in `now` that `before` lacks their initial contents, and writes `before` (blocking): what
    /// changed_variables() gave holds again.
    [[nodiscard]] virtual Result<void> restore_variables(std::span<const cachefmt::ModuleVariable> before,
                                                         std::span<const cachefmt::ModuleVariable> now)
    {
        static_cast<void>(now);
        return write_variables(before);
    }
    /// Writes variables (blocking). not_found, invalid_argument (another size) name the variable.
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
    /// The driver's handle (CUevent); 0 where a graph cannot hold it.
    [[nodiscard]] virtual std::uint64_t native() const noexcept { return 0; }
    /// Whether the work before it has finished. Blocks for nothing; any thread may ask. not_recordable of an event that
    /// was recorded in a capture: that work does not run. An event that nobody recorded yet has finished.
    [[nodiscard]] virtual Result<bool> is_done() = 0;

    /// Has the driver tell when the work before it is done, for done_at(). False where it cannot: whoever asks is_done() in
    /// time knows it then.
    [[nodiscard]] virtual bool keep_moment() noexcept { return false; }
    /// nullopt: it is not done, or its moment is not kept.
    [[nodiscard]] virtual std::optional<std::chrono::steady_clock::time_point> done_at() const noexcept
    {
        return std::nullopt;
    }
};

/// An in-order queue. While capturing, enqueued work is recorded and not run; capture reads no memory.
class Stream {
public:
    /// Blocks until its work is done, so that a process may exit after it (opencl/src/stream.hpp).
    virtual ~Stream() = default;

    /// invalid_argument for a missing kernel, a wrong number or kind of parameters, a block over the device's limit.
    [[nodiscard]] virtual Result<void> launch(const RawKernel& kernel) = 0;
    [[nodiscard]] virtual Result<void> copy(const RawCopy& copy) = 0;
    [[nodiscard]] virtual Result<void> fill(const RawFill& fill) = 0;
    /// What can be known of a kernel, copy or fill before it is enqueued: the errors of the above. It readies the kernel.
    /// unsupported: of other work, and where a backend cannot tell. Not in a capture.
    [[nodiscard]] virtual Result<void> check(const RawWork& work)
    {
        return fail(ErrorCode::unsupported, "a {} cannot be looked at before it is enqueued", kind_of(work).name);
    }
    /// The above of work that check() passed, and which has not changed since; an empty node is nothing.
    [[nodiscard]] virtual Result<void> enqueue_checked(const RawWork& work);

    /// An event after all work so far; another stream (of the same device) waits for it. Recording an event in a
    /// capturing stream and waiting for it in another makes the other part of the capture (fork), as in CUDA.
    /// Outside a capture any thread may record an event: that is how a launch in another stream is put in order.
    [[nodiscard]] virtual Result<std::shared_ptr<Event>> record_event() = 0;
    [[nodiscard]] virtual Result<void> wait(const std::shared_ptr<Event>& event) = 0;

    /// Blocks until all work is done. not_recordable while capturing.
    [[nodiscard]] virtual Result<void> synchronize() = 0;

    /// not_recordable if it captures already.
    [[nodiscard]] virtual Result<void> begin_capture() = 0;
    /// The work since begin_capture, of this stream and of those forked from it, which must have been joined
    /// (not_recordable otherwise). Ends the capture in any case; a sticky failure during it comes back here.
    [[nodiscard]] virtual Result<RawGraph> end_capture() = 0;
    [[nodiscard]] virtual bool is_capturing() const noexcept = 0;
    /// The driver's handle, for libraries that enqueue by themselves (CUstream); null where they cannot.
    [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
    /// While the result lives, this thread may do within somebody's capture what is no part of it and belongs to a first
    /// run: allocate, load code, make a library's handle. Null where no capture forbids it. For one thread.
    [[nodiscard]] virtual std::shared_ptr<void> allow_first_run() { return nullptr; }
};

/// An instantiated graph.
class GraphExec {
public:
    virtual ~GraphExec() = default;
    /// Enqueues the whole graph in `stream` (not capturing). partly_launched when a failure came after some nodes
    /// were enqueued: running the function instead would do their work twice.
    [[nodiscard]] virtual Result<void> launch(Stream& stream) noexcept = 0;
    /// launch() for whoever has just asked whether `stream` captures: a driver is not asked again.
    [[nodiscard]] virtual Result<void> launch_uncaptured(Stream& stream) noexcept { return launch(stream); }
    /// Gives one node new parameters, addresses or sizes. Same kind, kernel and dimensions as instantiated, else
    /// invalid_argument. Launches already enqueued keep the old ones.
    [[nodiscard]] virtual Result<void> update(std::uint32_t node, const RawWork& work) noexcept = 0;
    /// Does ahead what the first launch would do besides launching, and blocks until it is done. What is updated later
    /// stays as cheap. Where a backend has nothing to do: success.
    [[nodiscard]] virtual Result<void> upload() noexcept { return {}; }
};

struct DeviceLimits {
    std::uint32_t memory_alignment =
        128;                        ///< bytes: an offset into a base must be a multiple (OpenCL sub-buffers); 1 on CUDA
    std::uint64_t max_block = 1024; ///< work-items
    std::uint64_t local_memory = 48ULL * 1024;
    std::uint64_t memory = 0;
    bool keeps_running_execs = false; ///< a GraphExec may go while its launches run: the driver keeps what they need
    bool flat_addresses = false;      ///< every Address has k_flat_base, and a pointer may hide in any parameter word
};

class BulkMemory;
class Compiler;
class GraphBuilder;
class Recording;

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
    /// Guard facts: "backend", "device.architecture", "device.units", "device.local_memory", "device.partition",
    /// "driver.version", "runtime.version" (must_match), "device.name" (advisory) ...
    [[nodiscard]] virtual std::vector<cachefmt::Fact> facts() const = 0;
    /// For `doctor`: how graphs are replayed here and why, e.g. "re-enqueue (command buffer 0.9.0 present, slower on
    /// PoCL)".
    [[nodiscard]] virtual std::string replay_mode() const = 0;
    /// Makes the device current on this thread for as long as the result lives, for callers and libraries that go by
    /// the thread's device. Release it on the same thread, the last one first; the device outlives it. Null where there
    /// is nothing to do.
    [[nodiscard]] virtual std::shared_ptr<void> enter() const { return nullptr; }

    [[nodiscard]] virtual Result<MemoryRef> allocate(
        std::uint64_t size) = 0; ///< out_of_memory; size 0 is invalid_argument
    virtual void release(const MemoryRef& memory) noexcept = 0;
    /// Page-locked host memory. release() it as well. upload() and download() work on it.
    [[nodiscard]] virtual Result<MemoryRef> allocate_host(std::uint64_t size)
    {
        return fail(ErrorCode::unsupported, "{} has no page-locked host memory for {} bytes", id(), size);
    }
    /// Of any address that the driver knows, also memory that this object did not allocate.
    [[nodiscard]] virtual MemorySpace space_of(const Address& address) const noexcept
    {
        static_cast<void>(address);
        return MemorySpace::device;
    }
    /// An address range for captures only, which costs no memory (measured). Two of them never touch. On devices with
    /// flat addresses its addresses' upper 32 bits are those of no other live shadow and of no ordinary allocation, as
    /// far as the driver follows the wish. release() it as well.
    [[nodiscard]] virtual Result<MemoryRef> reserve_shadow(std::uint64_t size) = 0;
    [[nodiscard]] virtual Result<void> upload(const Address& to, ByteView bytes) = 0;              ///< blocking
    [[nodiscard]] virtual Result<void> download(std::span<std::byte> to, const Address& from) = 0; ///< blocking
    /// Work on large memory where it lies; lives as long as the device. Thread-safe. Where a backend has none of its
    /// own, one through upload() and download(), made on first use.
    [[nodiscard]] virtual BulkMemory& bulk();
    /// Bytes that allocate() could still give, as far as the driver tells. Without a better answer: the device's
    /// memory, or as good as no limit where that is unknown.
    [[nodiscard]] virtual std::uint64_t free_memory() const
    {
        return limits().memory != 0 ? limits().memory : ~std::uint64_t{0};
    }

    /// Source to code. Replaying needs none.
    [[nodiscard]] virtual Compiler& compiler() = 0;
    [[nodiscard]] virtual Result<std::unique_ptr<Module>> load(ByteView image) = 0;
    /// Declares that this process loaded the driver's `module` (CUmodule) from `image` (a cubin), and keeps it loaded
    /// for as long as the device is open. Recording then knows its code whenever it was loaded, and replays bind to it.
    /// invalid_argument where the image is none, or its kernels are not in the module.
    [[nodiscard]] virtual Result<void> register_module(void* module, ByteView image)
    {
        static_cast<void>(module);
        return fail(ErrorCode::unsupported, "{} has no modules of the driver ({} bytes given)", id(), image.size());
    }
    /// Those that were registered.
    [[nodiscard]] virtual std::vector<std::shared_ptr<Module>> registered_modules() { return {}; }
    /// Variables of this code whose addresses the program asked the driver for, so that it may write or read them
    /// between calls, unseen. Not those of modules that were registered, nor what libraries asked of their own code.
    /// Thread-safe.
    [[nodiscard]] virtual std::vector<std::string> exposed_variables(ByteView image)
    {
        static_cast<void>(image);
        return {};
    }
    /// How many variables of any code the program asked for: another number means that exposed_variables may have
    /// another answer. Thread-safe.
    [[nodiscard]] virtual std::uint64_t exposures() const noexcept { return 0; }
    /// How often register_module succeeded: another number means that replays may have to be bound anew. Thread-safe.
    [[nodiscard]] virtual std::uint64_t registrations() const noexcept { return 0; }
    [[nodiscard]] virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
    /// A stream of somebody else's (CUstream; null is the legacy default stream). It stays theirs and must outlive the
    /// result.
    [[nodiscard]] virtual Result<std::unique_ptr<Stream>> view_stream(void* native)
    {
        static_cast<void>(native);
        return fail(ErrorCode::unsupported, "{} has no streams of others: make one with Device::stream", id());
    }
    /// An empty graph, which is to have `nodes` nodes. One thread uses it, and soon: it may hold what other threads wait for.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphBuilder>> graph_builder(std::size_t nodes) = 0;
    /// A whole graph through graph_builder().
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate(const RawGraph& graph);
    /// An event that graphs can hold (Event::native).
    [[nodiscard]] virtual Result<std::shared_ptr<Event>> create_event()
    {
        return fail(ErrorCode::unsupported, "{} has no events that a graph can hold", id());
    }

    /// Begins, on a thread of its own, what the first restore in this process would wait for otherwise, and touches memory
    /// of the calling thread's heap, which is to restore. load() and instantiate() wait for its end; it ends before the
    /// device is closed and before the process exits. Once: later calls do nothing.
    virtual void begin_warm_up() noexcept {}
    /// What only recording needs; lives as long as the device. Thread-safe. Where a backend has none of its own, one
    /// that finds nothing and runs captured graphs as any other, made on first use.
    [[nodiscard]] virtual Recording& recording();

private:
    std::once_flag m_bulk_made, m_recording_made;
    std::unique_ptr<BulkMemory> m_bulk; ///< from then on
    std::unique_ptr<Recording> m_recording;
};

/// A device that a backend could open.
struct DeviceInfo {
    std::string id; ///< "opencl:0"
    std::string name;
    std::string detail; ///< platform, versions
};

/// One that a backend loads when it is needed first.
struct Library {
    std::string name;  ///< "NVRTC"
    std::string use;   ///< "compiles"
    std::string found; ///< which there is, or what is missing and the cure
};

/// The name before the colon: "opencl".
class Backend {
public:
    virtual ~Backend() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    /// Empty with no error where there is no device; an error where the runtime is missing or broken (with the cure).
    [[nodiscard]] virtual Result<std::vector<DeviceInfo>> devices() = 0;
    /// For `doctor`. Loads them.
    [[nodiscard]] virtual std::vector<Library> libraries() { return {}; }
    /// `selector`: an index, or part of a device's or platform's name (case-insensitive). not_found lists what there
    /// is.
    [[nodiscard]] virtual Result<std::shared_ptr<Device>> open(std::string_view selector) = 0;
    /// Device::prepare_recording for all of its devices, before one is open.
    [[nodiscard]] virtual Result<void> prepare_recording() { return {}; }
};

} // namespace warmgraph::backends
