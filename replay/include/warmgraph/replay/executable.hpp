// A decoded entry that is bound to this process: its images are loaded, its arena is allocated, and its graph is
// instantiated and ready to launch. This needs neither capture/ nor a compiler.
//
// Threads: one thread at a time. Lifetimes: the Device and the bound memory outlive the executable; launches in flight
// keep the objects that they need (see lifetimes.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/phases.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph::replay {

/// The regions' addresses and the scalars' values, in the graph's order. The executable has its own arena and constant
/// regions, so the elements for these regions are ignored.
struct Bindings {
    std::vector<MemoryRef> regions;
    std::vector<std::uint64_t> scalars; ///< bits of each value, zero-extended
    /// Driver handles of the caller's events, in the graph's order; 0 or missing: the executable makes its own event.
    /// They are fixed at restore.
    std::vector<std::uint64_t> events{};
    /// Driver handles of the caller's external semaphores, in the graph's order. They are fixed at restore.
    std::vector<std::uint64_t> semaphores{};
};

/// Returns the bytes of an image, or of a constant that is stored separately. An error makes the restore fail.
using ImageSource = std::function<Result<Bytes>(const cachefmt::ImageRef&)>;

/// Whether an executable runs this process's registered modules (Device::registered_modules) if they fit its graph, or
/// only copies of the stored images. Verification uses `ignore`, because it must test the stored images.
enum class RegisteredModules : std::uint8_t { bind, ignore };
/// Whether an executable of `graph` would run a registered module. Errors: those of restore() for registered modules.
[[nodiscard]] Result<bool> binds_registered_modules(backends::Device& device, const cachefmt::Graph& graph);

/// The cause of a failed restore.
enum class Blame : std::uint8_t {
    elsewhere,
    entry, ///< the entry's images or constants are damaged or missing, or this device does not accept them
};

/// Returns for each region whether the driver inspects its memory at instantiation. The driver does so for copies,
/// fills and launch attributes. Kernel parameters are only bytes to the driver, and may hold any address until the
/// graph is launched.
[[nodiscard]] std::vector<bool> regions_looked_at(const cachefmt::Graph& graph);

/// When an executable's graph is instantiated. With a thousand nodes this takes most of the time of a restore.
enum class Instantiation : std::uint8_t {
    at_restore,
    /// By complete() or by the second launch. A first launch before that enqueues the nodes one by one. A graph that
    /// does not allow this (can_launch_one_by_one) is instantiated at once.
    later,
    /// As `later`, but a graph that must not be enqueued one by one is instantiated by the first launch. Use this for
    /// bindings without memory, which the driver must not inspect.
    at_launch,
};

/// How the caller of restore() takes part in the loading of code.
struct Loading {
    /// Called once, before the driver gets the first image that this process has not loaded; if all images are loaded,
    /// before the graph is made. An error ends the restore.
    std::function<Result<void>()> begin{};
    Blame blame = Blame::elsewhere; ///< set if the restore fails
    Instantiation instantiation = Instantiation::at_restore;
};

enum class AskedCapture : std::uint8_t { no, yes };

class Executable {
public:
    /// Loads images (through `modules`, once per process and digest; `function` as in ModuleUser), allocates the arena,
    /// loads constants, then builds the graph and instantiates it with `bindings`. All executables of the process share
    /// constants, except constants that are exclusive; with RegisteredModules::ignore, no constant is shared. Errors:
    /// not_found (image), driver_failed, out_of_memory, invalid_argument (names a missing, too small or misaligned
    /// binding), not_found (a host function that this process did not register), not_recordable (a registered module's
    /// variable changed since the recording, or two registered modules fit: the function must run without a graph).
    [[nodiscard]] static Result<std::unique_ptr<Executable>> restore(
        std::shared_ptr<backends::Device> device, cachefmt::Graph graph, ModuleCache& modules,
        const ImageSource& images, const Bindings& bindings, Phases& phases,
        RegisteredModules registered = RegisteredModules::bind, std::uint64_t function = 0, Loading* loading = nullptr);

    /// Rebinds the bindings that changed since the last call, then enqueues the graph. After an error nothing was
    /// enqueued, and the next call rewrites all nodes. `asked`: whether the caller has just checked that `stream` is
    /// not capturing.
    [[nodiscard]] Result<void> launch(backends::Stream& stream, const Bindings& bindings,
                                      AskedCapture asked = AskedCapture::no) noexcept;

    /// As launch(), but runs on copies of the caller's memory and leaves out work with the outside (semaphores, events,
    /// host functions, waits for memory). Uses the same arena, so the last launch must be done. Call complete() first,
    /// because the instantiated graph is tested.
    [[nodiscard]] Result<void> rehearse(backends::Stream& stream, const Bindings& bindings);

    /// Does in advance all of the first launch that is possible, including complete(); blocks. After a failure nothing
    /// has changed.
    [[nodiscard]] Result<void> upload() noexcept;

    /// Instantiates the graph if it was left for later. After a failure nothing has changed.
    [[nodiscard]] Result<void> complete() noexcept;
    [[nodiscard]] bool is_complete() const noexcept;
    /// Makes the next launch instantiate the graph again, for its own addresses. Use this when launches at other
    /// addresses are done, because a graph with most nodes updated can stay slower (0.3 us a kernel on an H200,
    /// docs/measurements.md).
    void instantiate_at_next_launch() noexcept;

    [[nodiscard]] const cachefmt::Graph& graph() const noexcept;
    /// Returns the memory with the contents of a constant region. Other executables may share this memory.
    [[nodiscard]] MemoryRef constant(std::size_t region) const noexcept;
    [[nodiscard]] MemoryRef arena() const noexcept; ///< the memory of scratch regions; for tests
    /// Returns how many nodes the last launch rewrote.
    [[nodiscard]] std::size_t rebound_nodes() const noexcept;

    ~Executable();

private:
    struct Impl;
    explicit Executable(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

/// Returns the graph with slots replaced by addresses and values. `modules`: in the order of graph.images.
/// bindings.events and bindings.semaphores must hold a handle for each event and each semaphore of the graph.
[[nodiscard]] Result<backends::RawGraph> resolve(const cachefmt::Graph& graph,
                                                 std::span<backends::Module* const> modules, const Bindings& bindings);

} // namespace warmgraph::replay
