#include "warmgraph/replay/executable.hpp"

#include <algorithm>
#include <new>

#include "code_loader.hpp"
#include "patch_table.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/one_by_one.hpp"
#include "warmgraph/replay/constant_memory.hpp"

namespace warmgraph::replay {

using cachefmt::RegionKind;

namespace {

/// Scratch regions share one allocation; 256 bytes is the strongest alignment class that a guard names.
constexpr std::uint64_t k_arena_alignment = 256;

/// Whether the executable itself provides the region.
bool is_own(RegionKind kind) noexcept { return kind == RegionKind::arena || kind == RegionKind::constant; }

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) noexcept
{
    return (value + alignment - 1) / alignment * alignment;
}

/// Checks the memory that a call binds to the region. `asks_space`: whether to ask the driver for the memory space,
/// which takes longer than everything else in a call.
Result<void> check_binding(const backends::Device& device, const cachefmt::Region& region, const MemoryRef& memory,
                           bool asks_space)
{
    if (memory.address.is_null() && region.size == 0) return {}; // an empty tensor needs no memory
    if (memory.address.is_null())
        return fail(ErrorCode::invalid_argument, "region '{}' is not bound: give it memory of {} bytes", region.name,
                    region.size);
    if (memory.size < region.size)
        return fail(ErrorCode::invalid_argument, "region '{}' has {} bytes, expected at least {}", region.name,
                    memory.size, region.size);
    if (memory.address.offset % region.alignment != 0) // bases are aligned to the strongest class
        return fail(ErrorCode::invalid_argument, "region '{}' lies at offset {}, expected a multiple of {}",
                    region.name, memory.address.offset, region.alignment);
    if (asks_space && device.space_of(memory.address) != region.space) {
        const bool was_host = region.space == cachefmt::MemorySpace::host;
        return fail(ErrorCode::stale, "region '{}' was {} when it was recorded, now it is bound to {}", region.name,
                    was_host ? "page-locked host memory" : "device memory",
                    was_host ? "device memory" : "page-locked host memory");
    }
    return {};
}

/// Returns for each region whether its memory space must be the recorded one. This is so for host memory, because other
/// addresses may be invalid on the device, and for regions that other nodes than kernels use, because a copy node
/// states its memory spaces.
std::vector<std::uint8_t> regions_of_one_space(const cachefmt::Graph& graph, const PatchTable& patches)
{
    std::vector<std::uint8_t> result(graph.regions.size());
    for (std::size_t i = 0; i < graph.regions.size(); ++i)
        result[i] =
            static_cast<std::uint8_t>(graph.regions[i].space == cachefmt::MemorySpace::host ||
                                      std::ranges::any_of(patches.by_region[i], [&](const Site& site) {
                                          return !std::holds_alternative<cachefmt::KernelNode>(graph.nodes[site.node]);
                                      }));
    return result;
}

} // namespace

std::vector<bool> regions_looked_at(const cachefmt::Graph& graph)
{
    const PatchTable patches = make_patch_table(graph);
    std::vector<bool> result;
    for (const auto& sites : patches.by_region)
        result.push_back(std::ranges::any_of(sites, [&](const Site& site) {
            return site.place.kind == backends::NodePlaceKind::attribute ||
                   !std::holds_alternative<cachefmt::KernelNode>(graph.nodes[site.node]);
        }));
    return result;
}

struct Executable::Impl {
    std::shared_ptr<backends::Device> device;
    cachefmt::Graph graph;
    std::vector<std::shared_ptr<backends::Module>> modules; // kept so that the code lives as long as the exec
    std::vector<std::shared_ptr<backends::Event>> events;   // the events that the executable made itself
    MemoryRef arena;
    // For each region its constant; null for other regions.
    std::vector<std::shared_ptr<const ConstantMemory>> constants;
    PatchTable patches;
    std::vector<std::uint8_t> asks_space;      // by region: the result of regions_of_one_space()
    std::vector<std::size_t> given;            // indices of the regions that calls provide
    backends::RawGraph raw;                    // the exec's present contents
    Bindings bound;                            // the bindings of `raw`
    std::unique_ptr<backends::GraphExec> exec; // null: not instantiated yet
    bool has_launched = false;                 // whether the nodes were launched one by one
    std::vector<std::uint8_t> dirty;           // for each node: whether it must be rewritten
    std::vector<std::uint32_t> dirty_nodes;
    std::size_t rebound = 0;
    bool rewrite_all = false; // set when an update failed half way: the exec's parameters are then unknown
    /// Execs that a change of the graph replaced. They stay for a while, because their launches may still run.
    std::vector<std::unique_ptr<backends::GraphExec>> retired;
    /// The exec of the last rehearsal: the graph without its work with the outside, in the same arena; destroyed at the
    /// next launch.
    std::unique_ptr<backends::GraphExec> rehearsal;

    ~Impl()
    {
        rehearsal.reset();
        retired.clear();
        exec.reset();
        if (!arena.address.is_null()) device->release(arena);
    }

    /// Whether constants are shared within the process. An unverified graph may write constants by mistake, so it gets
    /// its own copies.
    enum class Sharing : std::uint8_t { none, of_process };
    Result<void> load_constants(const ImageSource& images, Sharing sharing);
    Result<void> allocate_arena();
    Result<void> fill_arena();
    Result<void> bind_events(const Bindings& bindings);
    Result<void> bind_semaphores(const Bindings& bindings);
    Result<void> instantiate();
    Result<void> enqueue(backends::Stream& stream, AskedCapture asked);
    Result<void> make_rehearsal(const Bindings& bindings);
    Result<void> check(const Bindings& bindings) const;
    void mark(std::span<const Site> sites) noexcept;
    Result<void> rebind(const Bindings& bindings);
    Result<void> update_dirty_nodes(backends::Stream& stream);
    Result<void> instantiate_again(backends::Stream& stream) noexcept;
};

Result<void> Executable::Impl::load_constants(const ImageSource& images, Sharing sharing)
{
    bound.regions.resize(graph.regions.size());
    constants.resize(graph.regions.size());
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const auto& region = graph.regions[i];
        if (region.kind != RegionKind::constant || region.size == 0) continue;
        const bool is_elsewhere = region.digest != Digest{};
        const Digest digest = is_elsewhere ? region.digest : sha256(region.contents);
        const auto contents = [&]() -> Result<Bytes> {
            if (!is_elsewhere) return region.contents;
            return images({digest, region.size, {}, region.name});
        };
        auto loaded = region.exclusive || region.inside || sharing == Sharing::none
                          ? ConstantMemory::load_exclusively(device, region.size, region.alignment, contents)
                          : ConstantMemory::load(device, digest, region.size, region.alignment, contents);
        if (!loaded) return within("load constant '" + region.name + "'", loaded.error());
        bound.regions[i] = (*loaded)->memory();
        constants[i] = std::move(*loaded);
    }
    return {};
}

Result<void> Executable::Impl::allocate_arena()
{
    const std::uint64_t alignment = std::max<std::uint64_t>(k_arena_alignment, device->limits().memory_alignment);
    std::uint64_t size = 0, strongest = alignment;
    for (const auto& region : graph.regions) {
        if (region.kind != RegionKind::arena) continue;
        size = align_up(size, std::max<std::uint64_t>(alignment, region.alignment)) + region.size;
        strongest = std::max<std::uint64_t>(strongest, region.alignment);
    }
    if (size == 0) return {};

    // Allocates more bytes, so that the arena can be aligned. The device itself aligns its allocations at least to the
    // weakest of these alignments.
    auto memory = device->allocate(size + (strongest - alignment));
    if (!memory) return within("allocate the arena", memory.error());
    arena = *memory;

    const bool is_flat = device->limits().flat_addresses; // without flat addresses only offsets need alignment
    std::uint64_t offset = is_flat ? align_up(arena.address.flat(), strongest) - arena.address.flat() : 0;
    const std::uint64_t start = offset;
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const auto& region = graph.regions[i];
        if (region.kind != RegionKind::arena) continue;
        offset = start + align_up(offset - start, std::max<std::uint64_t>(alignment, region.alignment));
        bound.regions[i] = {arena.address + offset, region.size};
        offset += region.size;
    }
    return fill_arena();
}

/// Fills the arena with zeros, as verification does. Then writes stored contents that the graph reads before it writes
/// there.
Result<void> Executable::Impl::fill_arena()
{
    if (auto filled = device->bulk().fill(arena, std::byte{0}); !filled)
        return within("clear the arena", filled.error());
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const auto& region = graph.regions[i];
        if (!region.inside || constants[i] == nullptr) continue;
        const Address to = bound.regions[*region.inside].address + region.inside_offset;
        if (auto copied = device->bulk().copy(to, constants[i]->memory().address, region.size); !copied)
            return within("fill '" + region.name + "'", copied.error());
    }
    return {};
}

/// Binds the graph's events. If an event's record and wait are both inside the graph, the executable makes the event.
/// If the graph only waits for an event, the caller must give that event, because nothing would record an event of the
/// executable.
Result<void> Executable::Impl::bind_events(const Bindings& bindings)
{
    const auto used_by = [this]<class Node>(std::size_t event, std::type_identity<Node>) {
        return std::ranges::any_of(graph.nodes, [event](const cachefmt::Node& node) {
            const auto* const use = std::get_if<Node>(&node);
            return use != nullptr && use->event == event;
        });
    };
    bound.events.assign(graph.events.size(), 0);
    for (std::size_t i = 0; i < graph.events.size(); ++i) {
        if (i < bindings.events.size() && bindings.events[i] != 0) {
            bound.events[i] = bindings.events[i];
            continue;
        }
        if (used_by(i, std::type_identity<cachefmt::EventWaitNode>{}) &&
            !used_by(i, std::type_identity<cachefmt::EventRecordNode>{}))
            return fail(
                ErrorCode::invalid_argument,
                "the graph waits for the event '{}', which it does not record itself: declare the event (Spec::events)",
                graph.events[i]);
        auto event = device->create_event();
        if (!event) return within("event '" + graph.events[i] + "'", event.error());
        bound.events[i] = (*event)->native();
        events.push_back(std::move(*event));
    }
    return {};
}

/// Binds the caller's semaphores. The executable cannot make semaphores, because work outside uses the ones that the
/// process imported.
Result<void> Executable::Impl::bind_semaphores(const Bindings& bindings)
{
    for (std::size_t i = 0; i < graph.semaphores.size(); ++i)
        if (i >= bindings.semaphores.size() || bindings.semaphores[i] == 0)
            return fail(ErrorCode::invalid_argument,
                        "the graph uses the external semaphore '{}', which was not given: declare the semaphore "
                        "(Spec::semaphores)",
                        graph.semaphores[i]);
    bound.semaphores.assign(bindings.semaphores.begin(),
                            bindings.semaphores.begin() + static_cast<std::ptrdiff_t>(graph.semaphores.size()));
    return {};
}

/// Instantiates the graph that `raw` has now.
Result<void> Executable::Impl::instantiate()
{
    auto made = device->instantiate(raw);
    if (!made) return within("instantiate", made.error());
    exec = std::move(*made);
    return {};
}

/// Enqueues the graph. The first launch of a graph that is not instantiated enqueues the nodes one by one. If that is
/// impossible and no node was enqueued, instantiates the graph.
Result<void> Executable::Impl::enqueue(backends::Stream& stream, AskedCapture asked)
{
    if (!exec && !std::exchange(has_launched, true)) {
        const auto current = device->enter(); // enters once, not for each node
        auto enqueued = backends::launch_one_by_one(stream, raw);
        if (enqueued || enqueued.error().code == ErrorCode::partly_launched) return enqueued;
    }
    if (!exec)
        if (auto made = instantiate(); !made) return made;
    return asked == AskedCapture::yes ? exec->launch_uncaptured(stream) : exec->launch(stream);
}

/// Makes the exec of a rehearsal. Builds the graph anew for each rehearsal: the patch table does not fit a graph with
/// nodes left out.
Result<void> Executable::Impl::make_rehearsal(const Bindings& bindings)
{
    Bindings here = bound; // the copies share the arena's regions, the events and the semaphores
    for (const std::size_t i : given) here.regions[i] = bindings.regions[i];
    here.scalars = bindings.scalars;
    std::vector<backends::Module*> raw_modules;
    for (const auto& module : modules) raw_modules.push_back(module.get());
    auto whole = resolve(graph, patches, raw_modules, here);
    if (!whole) return std::unexpected(whole.error());
    auto made = device->instantiate(backends::without_outside(std::move(*whole)));
    if (!made) return std::unexpected(made.error());
    rehearsal = std::move(*made);
    return {};
}

Result<void> Executable::Impl::check(const Bindings& bindings) const
{
    if (bindings.regions.size() != graph.regions.size() || bindings.scalars.size() != graph.scalars.size())
        return fail(ErrorCode::invalid_argument, "{} regions and {} scalars are bound, expected {} and {}",
                    bindings.regions.size(), bindings.scalars.size(), graph.regions.size(), graph.scalars.size());
    for (const std::size_t i : given) {
        if (auto checked = check_binding(*device, graph.regions[i], bindings.regions[i], asks_space[i] != 0); !checked)
            return checked;
    }
    return {};
}

void Executable::Impl::mark(std::span<const Site> sites) noexcept
{
    for (const Site& site : sites) {
        if (dirty[site.node] != 0) continue;
        dirty[site.node] = 1;
        dirty_nodes.push_back(site.node); // memory is reserved for every node, so this allocates nothing
    }
}

Result<void> Executable::Impl::rebind(const Bindings& bindings)
{
    for (const std::size_t i : given) {
        const bool moved = bound.regions[i].address != bindings.regions[i].address;
        if (!moved && bound.regions[i].size == bindings.regions[i].size) continue;
        if (auto checked = check_binding(*device, graph.regions[i], bindings.regions[i], asks_space[i] != 0); !checked)
            return checked;
        bound.regions[i] = bindings.regions[i];
        if (!moved) continue;
        for (const Site& site : patches.by_region[i])
            patch_region(raw.nodes[site.node], site, bindings.regions[i].address);
        mark(patches.by_region[i]);
    }
    for (std::size_t i = 0; i < graph.scalars.size(); ++i) {
        if (bound.scalars[i] == bindings.scalars[i]) continue;
        bound.scalars[i] = bindings.scalars[i];
        for (const Site& site : patches.by_scalar[i]) patch_scalar(raw.nodes[site.node], site, bindings.scalars[i]);
        mark(patches.by_scalar[i]);
    }
    return {};
}

Result<void> Executable::Impl::update_dirty_nodes(backends::Stream& stream)
{
    if (dirty_nodes.empty()) return {};
    Result<void> result;
    const auto current = device->enter(); // enters once, not for each update
    for (const std::uint32_t node : dirty_nodes) {
        dirty[node] = 0;
        if (!result || !exec) continue; // skips the update: a later exec is made from `raw`
        result = exec->update(node, raw.nodes[node].work);
    }
    dirty_nodes.clear();
    // Some changes need a new exec (on CUDA, for example, a changed box of a copy or a changed access-policy window).
    if (!result && result.error().code == ErrorCode::unsupported) result = instantiate_again(stream);
    rewrite_all = !result;
    return result;
}

Result<void> Executable::Impl::instantiate_again(backends::Stream& stream) noexcept
try {
    constexpr std::size_t k_retired = 8;
    if (retired.size() == k_retired) {
        // Does not synchronise, because the graph may contain a wait that this thread must end.
        if (device->limits().keeps_running_execs) {
            retired.erase(retired.begin());
        } else { // one executable's launches are in order, so they are all done when this stream is
            if (auto done = stream.synchronize(); !done) return done;
            retired.clear();
        }
    }
    retired.reserve(k_retired);
    auto made = device->instantiate(raw);
    if (!made) return within("instantiate for other addresses", made.error());
    retired.push_back(std::exchange(exec, std::move(*made)));
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "out of host memory while it was instantiated for other addresses");
}

Executable::Executable(std::unique_ptr<Impl> impl) : m_impl(std::move(impl)) {}
Executable::~Executable() = default;

namespace {

/// Whether the error means that the entry is damaged. Lack of memory and driver errors of this process do not count.
bool is_damage(ErrorCode code) noexcept
{
    return code == ErrorCode::corrupt || code == ErrorCode::stale || code == ErrorCode::not_found;
}

} // namespace

Result<std::unique_ptr<Executable>> Executable::restore(std::shared_ptr<backends::Device> device, cachefmt::Graph graph,
                                                        ModuleCache& modules, const ImageSource& images,
                                                        const Bindings& bindings, Phases& phases,
                                                        RegisteredModules registered, std::uint64_t function,
                                                        Loading* loading)
{
    if (loading != nullptr) loading->blame = Blame::elsewhere;
    const auto code_failed = [loading](const Error& error) {
        if (loading != nullptr && is_damage(error.code)) loading->blame = Blame::entry;
        return std::unexpected(error);
    };
    auto impl = std::make_unique<Impl>();
    impl->device = std::move(device);
    impl->graph = std::move(graph);
    impl->patches = make_patch_table(impl->graph);
    impl->asks_space = regions_of_one_space(impl->graph, impl->patches);
    for (std::size_t i = 0; i < impl->graph.regions.size(); ++i)
        if (!is_own(impl->graph.regions[i].kind)) impl->given.push_back(i);
    if (auto checked = impl->check(bindings); !checked) return std::unexpected(checked.error());
    {
        const auto timer = phases.measure("load");
        const auto sharing = registered == RegisteredModules::ignore ? Impl::Sharing::none : Impl::Sharing::of_process;
        if (auto loaded = impl->load_constants(images, sharing); !loaded) return code_failed(loaded.error());
        const auto begin = loading != nullptr ? loading->begin : nullptr;
        CodeLoader code{impl->device, modules, impl->graph, images, begin};
        if (auto begun = code.begin(registered, impl->bound.regions); !begun) return std::unexpected(begun.error());
        // Allocates the arena while the first images are read.
        if (auto allocated = impl->allocate_arena(); !allocated) return std::unexpected(allocated.error());
        auto loaded = code.finish(function);
        if (!loaded) return code_failed(loaded.error());
        impl->modules = std::move(*loaded);
    }
    const auto timer = phases.measure("build");
    for (const std::size_t i : impl->given) impl->bound.regions[i] = bindings.regions[i];
    impl->bound.scalars = bindings.scalars;
    if (auto made = impl->bind_events(bindings); !made) return std::unexpected(made.error());
    if (auto made = impl->bind_semaphores(bindings); !made) return std::unexpected(made.error());

    std::vector<backends::Module*> raw_modules;
    for (const auto& module : impl->modules) raw_modules.push_back(module.get());
    auto raw = resolve(impl->graph, impl->patches, raw_modules, impl->bound);
    if (!raw) return std::unexpected(raw.error());
    impl->raw = std::move(*raw);
    impl->dirty.resize(impl->raw.nodes.size());
    impl->dirty_nodes.reserve(impl->raw.nodes.size());
    const auto when = loading != nullptr ? loading->instantiation : Instantiation::at_restore;
    const bool is_later = when == Instantiation::at_launch ||
                          (when == Instantiation::later && backends::can_launch_one_by_one(impl->raw));
    if (is_later) return std::unique_ptr<Executable>(new Executable(std::move(impl)));
    if (auto made = impl->instantiate(); !made) return std::unexpected(made.error());
    return std::unique_ptr<Executable>(new Executable(std::move(impl)));
}

Result<void> Executable::launch(backends::Stream& stream, const Bindings& bindings, AskedCapture asked) noexcept
try {
    Impl& impl = *m_impl;
    if (bindings.regions.size() != impl.graph.regions.size() || bindings.scalars.size() != impl.graph.scalars.size())
        return impl.check(bindings);
    impl.rehearsal.reset();
    auto rebound = impl.rebind(bindings);
    if (impl.rewrite_all) {
        impl.dirty_nodes.clear();
        for (std::uint32_t node = 0; node < impl.raw.nodes.size(); ++node) impl.dirty_nodes.push_back(node);
    }
    impl.rebound = impl.dirty_nodes.size();
    // Updates the exec even if a later binding was refused, because otherwise `raw` and the exec would differ.
    if (auto updated = impl.update_dirty_nodes(stream); !updated) return updated;
    if (!rebound) return rebound;
    return impl.enqueue(stream, asked);
} catch (const std::bad_alloc&) { // no memory for the text; nothing was enqueued, and nodes may be half patched
    m_impl->rewrite_all = true;
    return std::unexpected(Error{ErrorCode::out_of_memory, {}});
}

Result<void> Executable::rehearse(backends::Stream& stream, const Bindings& bindings)
{
    Impl& impl = *m_impl;
    if (auto completed = complete(); !completed) return completed;
    if (!backends::has_outside_work(impl.raw)) return launch(stream, bindings);
    if (auto checked = impl.check(bindings); !checked) return checked;
    if (auto made = impl.make_rehearsal(bindings); !made)
        return within("run it without its semaphores, events and host functions", made.error());
    return impl.rehearsal->launch(stream);
}

Result<void> Executable::upload() noexcept
{
    if (auto completed = complete(); !completed) return completed;
    return m_impl->exec->upload();
}

Result<void> Executable::complete() noexcept
try {
    return is_complete() ? Result<void>{} : m_impl->instantiate();
} catch (const std::bad_alloc&) {
    return std::unexpected(Error{ErrorCode::out_of_memory, {}});
}

bool Executable::is_complete() const noexcept { return m_impl->exec != nullptr; }

void Executable::instantiate_at_next_launch() noexcept
{
    m_impl->exec = nullptr;
    m_impl->has_launched = true; // so that the next launch does not enqueue the nodes one by one
}

const cachefmt::Graph& Executable::graph() const noexcept { return m_impl->graph; }
MemoryRef Executable::constant(std::size_t region) const noexcept { return m_impl->bound.regions[region]; }
MemoryRef Executable::arena() const noexcept { return m_impl->arena; }
std::size_t Executable::rebound_nodes() const noexcept { return m_impl->rebound; }

} // namespace warmgraph::replay
