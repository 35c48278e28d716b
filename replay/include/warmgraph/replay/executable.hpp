// A decoded entry bound to this process: images loaded, arena allocated, graph instantiated, ready to launch. Needs
// neither capture/ nor a compiler.
//
// Threads: one thread at a time. Lifetimes: the Device and the bound memory outlive the executable; launches in flight
// keep what they need (see lifetimes.md).
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
/// regions; their entries are ignored.
struct Bindings {
    std::vector<MemoryRef> regions;
    std::vector<std::uint64_t> scalars; ///< bits, zero-extended
    /// The caller's events by driver handle; 0 or missing: the executable makes its own event. Fixed at restore.
    std::vector<std::uint64_t> events{};
    /// The caller's external semaphores by driver handle. Fixed at restore.
    std::vector<std::uint64_t> semaphores{};
};

/// Returns the bytes of an image, or of a constant that is stored separately. An error makes the restore fail.
using ImageSource = std::function<Result<Bytes>(const cachefmt::ImageRef&)>;

/// Whether an executable runs this process's registered modules (Device::registered_modules) if they fit its graph, or
/// only copies of the stored images. Verification uses `ignore`, because it must test the stored images.
enum class RegisteredModules : std::uint8_t { bind, ignore };
/// Whether an executable of `graph` would run a registered module. Errors: as restore() for registered modules.
[[nodiscard]] Result<bool> binds_registered_modules(backends::Device& device, const cachefmt::Graph& graph);

/// The cause of a failed restore.
enum class Blame : std::uint8_t {
    elsewhere,
    entry, ///< its images or constants are damaged or missing, or this device does not accept them
};

/// For each region whether the driver inspects the memory at instantiation. It does for copies, fills and launch
/// attributes. Kernel parameters are only bytes, which may be any address until the graph is launched.
[[nodiscard]] std::vector<bool> regions_looked_at(const cachefmt::Graph& graph);

/// When an executable's graph is instantiated, which takes most of the time for a thousand nodes.
enum class Instantiation : std::uint8_t {
    at_restore,
    /// By complete(), or by the second launch: until then the first launch enqueues the nodes one by one. A graph that
    /// does not allow this (can_launch_one_by_one) is instantiated at once.
    later,
    /// As `later`, but a graph that must not be enqueued one by one is instantiated by the first launch. For bindings
    /// that the driver must not inspect, because they have no memory.
    at_launch,
};

/// How the caller of restore() takes part in the loading of code.
struct Loading {
    /// Called once, before the driver gets the first image that this process has not loaded; if all are loaded, before
    /// the graph. An error ends the restore.
    std::function<Result<void>()> begin{};
    Blame blame = Blame::elsewhere; ///< set if the restore fails
    Instantiation instantiation = Instantiation::at_restore;
};

enum class AskedCapture : std::uint8_t { no, yes };

class Executable {
public:
    /// Loads images (through `modules`, once per process and digest; `function` as in ModuleUser), allocates the arena,
    /// loads constants (shared by all executables of the process, except exclusive ones and with `ignore`), builds and
    /// instantiates with `bindings`. Errors: not_found (image), driver_failed, out_of_memory, invalid_argument (names a
    /// missing, too small or misaligned binding), not_found (a host function that this process did not register),
    /// not_recordable (a registered module's variable changed since the recording, or two registered modules fit: the
    /// function must run without a graph).
    [[nodiscard]] static Result<std::unique_ptr<Executable>> restore(
        std::shared_ptr<backends::Device> device, cachefmt::Graph graph, ModuleCache& modules,
        const ImageSource& images, const Bindings& bindings, Phases& phases,
        RegisteredModules registered = RegisteredModules::bind, std::uint64_t function = 0, Loading* loading = nullptr);

    /// Rebinds what changed since the last call, then enqueues. After an error nothing was enqueued, and the next bind
    /// rewrites everything. `asked`: whether the caller has just checked that `stream` is not capturing.
    [[nodiscard]] Result<void> launch(backends::Stream& stream, const Bindings& bindings,
                                      AskedCapture asked = AskedCapture::no) noexcept;

    /// launch() for copies of the caller's memory, without work with the outside (semaphores, events, host functions,
    /// waits for memory). Uses the same arena; the last launch must be done. Call complete() first: this tests the
    /// instantiated graph.
    [[nodiscard]] Result<void> rehearse(backends::Stream& stream, const Bindings& bindings);

    /// Does all that is possible of the first launch in advance, including complete(); blocks. After a failure nothing
    /// has changed.
    [[nodiscard]] Result<void> upload() noexcept;

    /// Instantiates the graph if it was left for later. After a failure nothing has changed.
    [[nodiscard]] Result<void> complete() noexcept;
    [[nodiscard]] bool is_complete() const noexcept;
    /// Makes the next launch instantiate for its own addresses. Use this after launches at other addresses that are
    /// done: a graph with most nodes updated can stay slower (0.3 us a kernel on an H200, docs/measurements.md).
    void instantiate_at_next_launch() noexcept;

    [[nodiscard]] const cachefmt::Graph& graph() const noexcept;
    /// The memory of a constant region's contents; other executables may share it.
    [[nodiscard]] MemoryRef constant(std::size_t region) const noexcept;
    [[nodiscard]] MemoryRef arena() const noexcept; ///< for tests
    /// Nodes rewritten by the last launch.
    [[nodiscard]] std::size_t rebound_nodes() const noexcept;

    ~Executable();

private:
    struct Impl;
    explicit Executable(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

/// Returns the graph with slots replaced by addresses and values. `modules`: in the order of graph.images.
/// bindings.events and bindings.semaphores must hold a handle for each of the graph's.
[[nodiscard]] Result<backends::RawGraph> resolve(const cachefmt::Graph& graph,
                                                 std::span<backends::Module* const> modules, const Bindings& bindings);

} // namespace warmgraph::replay
