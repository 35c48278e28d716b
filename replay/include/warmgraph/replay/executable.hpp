// A decoded entry bound to this process: images loaded, arena allocated, graph instantiated, ready to launch.
// Uses neither capture/, nor a compiler.
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

/// Where the regions are and what the scalars are now, in the graph's order.
/// Arena and constant regions are the executable's own: their entries are ignored.
struct Bindings {
    std::vector<MemoryRef> regions;
    std::vector<std::uint64_t> scalars; ///< bits, zero-extended
    /// The caller's events by driver handle, 0 (or left out) for one of the executable's own. Fixed at restore.
    std::vector<std::uint64_t> events{};
    /// The caller's external semaphores by driver handle. Fixed at restore.
    std::vector<std::uint64_t> semaphores{};
};

/// Gives the bytes of an image, or of a constant that is stored elsewhere; an error makes the restore fail.
using ImageSource = std::function<Result<Bytes>(const cachefmt::ImageRef&)>;

/// Whether an executable runs this process's registered modules (Device::registered_modules), where they are what its
/// graph needs, or copies of the stored images alone. Verification needs the latter: else it would not see what is stored.
enum class RegisteredModules : std::uint8_t { bind, ignore };
/// Whether an executable of `graph` would run one. The errors are restore()'s of registered modules.
[[nodiscard]] Result<bool> binds_registered_modules(backends::Device& device, const cachefmt::Graph& graph);

/// What a restore failed of.
enum class Blame : std::uint8_t {
    elsewhere,
    entry, ///< its images or constants are damaged, missing, or nothing that this device takes
};

/// By region: whether the driver looks at what lies there when the graph is instantiated. Of a copy, a fill or a launch
/// attribute it does; what a kernel is given are bytes to it, which may be any address as long as nothing is launched.
[[nodiscard]] std::vector<bool> regions_looked_at(const cachefmt::Graph& graph);

/// When an executable's graph is instantiated, which for a thousand nodes takes longer than all else.
enum class Instantiation : std::uint8_t {
    at_restore,
    /// By complete(), or by the second launch: the first enqueues the nodes one by one where that has not happened yet. A
    /// graph of which that may not be done (can_launch_one_by_one) is instantiated at once.
    later,
    /// As `later`; what may not be enqueued one by one is instantiated by the first launch. For bindings that the driver
    /// must not see: nothing lies there.
    at_launch,
};

/// What whoever restores a stored graph has to do with the loading of its code.
struct Loading {
    /// Called once, right before the driver is given the first image that this process has not loaded; where it has them
    /// all, before the graph. An error ends the restore.
    std::function<Result<void>()> begin{};
    Blame blame = Blame::elsewhere; ///< set where the restore fails
    Instantiation instantiation = Instantiation::at_restore;
};

enum class AskedCapture : std::uint8_t { no, yes };

class Executable {
public:
    /// Loads images (through `modules`, once per process and digest; `function` as in ModuleUser), allocates the arena,
    /// loads constants (once for all executables of the process, but for those that ignore registered modules and
    /// constants that are exclusive), builds and instantiates with `bindings`. Errors: not_found (image), driver_failed,
    /// out_of_memory, invalid_argument (binding missing, too small or misaligned, named), not_found (a host function
    /// that this process did not register), not_recordable (a variable of a registered module holds something else than
    /// when it was recorded, or two registered modules would do: the function must run as it is).
    [[nodiscard]] static Result<std::unique_ptr<Executable>> restore(
        std::shared_ptr<backends::Device> device, cachefmt::Graph graph, ModuleCache& modules,
        const ImageSource& images, const Bindings& bindings, Phases& phases,
        RegisteredModules registered = RegisteredModules::bind, std::uint64_t function = 0, Loading* loading = nullptr);

    /// Rebinds what differs from the last call, then enqueues. On an error nothing was enqueued and the next bind
    /// rewrites everything. `asked`: whether the caller has just found that `stream` captures nothing.
    [[nodiscard]] Result<void> launch(backends::Stream& stream, const Bindings& bindings,
                                      AskedCapture asked = AskedCapture::no) noexcept;

    /// launch() for copies of the caller's memory: what works together with the outside (semaphores, events, host
    /// functions, waits for memory) is left out. Runs in the same arena. The one before must be done. What is looked at so
    /// is the instantiated graph: complete() comes first.
    [[nodiscard]] Result<void> rehearse(backends::Stream& stream, const Bindings& bindings);

    /// Takes from the first launch what can be done ahead of it, complete() included; blocks. A failure leaves everything
    /// as it was.
    [[nodiscard]] Result<void> upload() noexcept;

    /// Instantiates where that was left for later. A failure leaves everything as it was.
    [[nodiscard]] Result<void> complete() noexcept;
    [[nodiscard]] bool is_complete() const noexcept;
    /// The next launch instantiates, for its own addresses. For whoever launched at others, and waited: a graph of which
    /// most nodes were updated since can be slower for good (0.3 us a kernel on an H200, docs/measurements.md).
    void instantiate_at_next_launch() noexcept;

    [[nodiscard]] const cachefmt::Graph& graph() const noexcept;
    /// Where it has the contents of a region that is a constant; others may have them there as well.
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

/// The graph with slots replaced by addresses and values. `modules` in the order of graph.images; bindings.events and
/// bindings.semaphores hold a handle for each of the graph's.
[[nodiscard]] Result<backends::RawGraph> resolve(const cachefmt::Graph& graph,
                                                 std::span<backends::Module* const> modules, const Bindings& bindings);

} // namespace warmgraph::replay
