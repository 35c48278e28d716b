#include "warmgraph/preload/preload_entry.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/phases.hpp"
#include "warmgraph/capture/bindings.hpp"

namespace warmgraph {

namespace {

/// The most memory per device for placeholders, which may never be used.
constexpr std::uint64_t k_most_placeholder_bytes = 256ULL << 20U;

/// The first of the addresses without memory (far_addresses.hpp). Nothing ever runs there, and kernel parameters are
/// only bytes to the driver. Each region gets its own address, because copies must not overlap.
constexpr std::uint64_t k_nowhere = 1ULL << 46U;

std::uint64_t rounded(std::uint64_t bytes) noexcept
{
    constexpr std::uint64_t k_step = cachefmt::k_max_alignment; // a multiple of this keeps every alignment class
    return (std::max<std::uint64_t>(bytes, 1) + k_step - 1) / k_step * k_step;
}

/// Whether calls provide the region's memory.
bool is_callers(const cachefmt::Region& region) noexcept
{
    return region.kind != cachefmt::RegionKind::arena && region.kind != cachefmt::RegionKind::constant;
}

/// Whether every function could use the graph. Events, semaphores and host functions belong to one function.
bool is_for_everybody(const cachefmt::Graph& graph) noexcept
{
    if (!graph.events.empty() || !graph.semaphores.empty()) return false;
    const auto calls_host = [](const auto& node) { return std::holds_alternative<cachefmt::HostNode>(node); };
    const auto is_on_device = [](const auto& region) { return region.space == cachefmt::MemorySpace::device; };
    return std::ranges::none_of(graph.nodes, calls_host) && std::ranges::all_of(graph.regions, is_on_device);
}

/// Whether the image is the same module for all addresses. An image with addresses in its variables is not.
bool is_same_everywhere(const cachefmt::ImageRef& image)
{
    return std::ranges::all_of(image.variables, [](const auto& variable) { return variable.slots.empty(); });
}

/// Guessed bindings for a graph whose calls are not known.
struct UnknownCallBindings {
    replay::Bindings bindings;
    std::shared_ptr<const Placeholder> placeholder;
    bool may_be_seen = true; ///< whether the driver may inspect the bindings, because they have memory
};

/// Returns the region's memory in the last call of another function, if calls of this function may use the same memory.
std::optional<MemoryRef> last_memory(const backends::Device& device, const cachefmt::Region& region, bool is_looked_at,
                                     const LastAddresses& addresses)
{
    if (region.kind == cachefmt::RegionKind::output) return std::nullopt; // each call has its own outputs
    const auto last = addresses.find(device, region.name);
    if (!last || last->is_null() || last->offset % region.alignment != 0) return std::nullopt;
    const auto is_there = [&](std::uint64_t offset) { return device.space_of(*last + offset) == region.space; };
    if (is_looked_at && !(is_there(0) && is_there(region.size == 0 ? 0 : region.size - 1))) return std::nullopt;
    return MemoryRef{*last, region.size};
}

Result<UnknownCallBindings> guess(const std::shared_ptr<backends::Device>& device, const cachefmt::Graph& graph,
                                  const PreloadClient* function, PreloadState& state)
{
    const auto looked_at = replay::regions_looked_at(graph);
    const bool is_flat = device->limits().flat_addresses;
    std::vector<MemoryRef> regions(graph.regions.size());
    std::vector<std::size_t> in_memory;
    std::uint64_t bytes = 0, nowhere = 0;
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const cachefmt::Region& region = graph.regions[i];
        if (!is_callers(region)) continue;
        if (function != nullptr && i < function->memory.size() && !function->memory[i].address.is_null()) {
            regions[i] = function->memory[i];
        } else if (const auto last =
                       is_flat ? last_memory(*device, region, looked_at[i], state.addresses) : std::nullopt) {
            regions[i] = *last;
        } else if (is_flat && !looked_at[i]) {
            regions[i] = {Address::from_flat(k_nowhere + nowhere), rounded(region.size)};
            nowhere += rounded(region.size);
        } else {
            in_memory.push_back(i);
            bytes += rounded(region.size);
        }
    }
    UnknownCallBindings result;
    result.may_be_seen = bytes <= k_most_placeholder_bytes || !is_flat;
    if (!is_flat && function == nullptr && bytes > k_most_placeholder_bytes)
        return fail(ErrorCode::out_of_memory, "its regions have {} bytes, expected at most {} to preload it", bytes,
                    k_most_placeholder_bytes);
    Address next = Address::from_flat(k_nowhere + nowhere);
    if (result.may_be_seen && bytes != 0) {
        auto placeholder = state.placeholders.at_least(device, bytes);
        if (!placeholder) return std::unexpected(placeholder.error());
        result.placeholder = std::move(*placeholder);
        next = result.placeholder->memory().address;
    }
    for (const std::size_t i : in_memory) {
        regions[i] = {next, rounded(graph.regions[i].size)};
        next = next + rounded(graph.regions[i].size);
    }
    result.bindings = bindings_of(graph, regions, std::vector<std::uint64_t>(graph.scalars.size()),
                                  function != nullptr ? function->handles : DeclaredHandles{});
    return result;
}

} // namespace

/// While this object lives, a mark on disk shows later processes that this entry's code was being loaded.
class EntryPreloader::LoadMarkScope {
public:
    LoadMarkScope(store::LocalStore& store, const Request& request) : m_store(store), m_request(request) {}
    /// Begins the mark, only once. Error: earlier processes died during this load.
    Result<void> begin()
    {
        if (m_is_begun) return {};
        auto begun = m_store.begin_load(m_request.key, m_request.target);
        if (!begun) return std::unexpected(begun.error());
        m_is_begun = true;
        m_mark = std::move(*begun);
        return {};
    }

private:
    store::LocalStore& m_store;
    const Request& m_request;
    bool m_is_begun = false;
    std::unique_ptr<store::LoadMark> m_mark; ///< null if the store keeps no marks
};

EntryPreloader::EntryPreloader(PreloadState& state, std::shared_ptr<store::LocalStore> store,
                               replay::ModuleCache& modules, replay::ImageSource images)
    : m_state(state), m_store(std::move(store)), m_modules(modules), m_images(std::move(images))
{
}

/// Loads the code of a graph that every function may use. Returns false if some of the code keeps state, because each
/// function then needs its own code.
Result<bool> EntryPreloader::load_code(const Request& request, const cachefmt::Graph& graph, LoadMarkScope& mark,
                                       const std::stop_token& stop) const
{
    bool is_shared = true;
    for (const cachefmt::ImageRef& image : graph.images) {
        if (stop.stop_requested()) return false;
        if (!is_same_everywhere(image)) {
            is_shared = false;
            continue;
        }
        const auto bytes = [&]() -> Result<Bytes> {
            if (auto marked = mark.begin(); !marked) return std::unexpected(marked.error());
            return m_images(image);
        };
        auto loaded = m_modules.load(request.device, image, replay::k_nobody, bytes);
        if (!loaded) return std::unexpected(loaded.error());
        is_shared = is_shared && !(**loaded).keeps_state();
    }
    return is_shared;
}

Result<PreloadedGraph> EntryPreloader::restore(const Request& request, cachefmt::Entry entry, LoadMarkScope& mark,
                                               const std::stop_token& stop) const
{
    const std::uint64_t registrations = request.device->registrations();
    auto guessed = guess(request.device, entry.graph, request.function, m_state);
    if (!guessed) return std::unexpected(guessed.error());
    Phases phases;
    replay::Loading loading;
    loading.begin = [&] { return mark.begin(); };
    loading.instantiation = guessed->may_be_seen ? request.instantiation : replay::Instantiation::at_launch;
    const auto user = request.function != nullptr ? request.function->user : PreloadedGraphs::k_everybody;
    auto executable =
        replay::Executable::restore(request.device, std::move(entry.graph), m_modules, m_images, guessed->bindings,
                                    phases, replay::RegisteredModules::bind, user, &loading);
    if (!executable) return std::unexpected(executable.error());
    m_state.graphs.let_first_calls_pass(request.key, stop);
    if (loading.instantiation == replay::Instantiation::at_restore)
        if (auto uploaded = (**executable).upload(); !uploaded)
            log().debug("a graph is not uploaded ahead, its first launch will do it: {}", uploaded.error().message);
    return PreloadedGraph{
        std::move(entry.header),    std::move(*executable), std::move(guessed->placeholder), registrations, {},
        request.function != nullptr};
}

Result<void> EntryPreloader::preload(const Request& request, const std::stop_token& stop) const
try {
    store::Stamp stamp;
    auto entry = m_store->entry(request.key, store::ReadPurpose::preload, &stamp);
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return fail(ErrorCode::not_found, "the entry was removed meanwhile");
    const cachefmt::Graph& graph = (**entry).graph;
    std::unique_ptr<PreloadedGraphs::RestoreClaim> claim;
    if (const PreloadClient* function = request.function) {
        if (auto usable = function->check((**entry).header, graph); !usable) return std::unexpected(usable.error());
        claim = m_state.graphs.claim_for(function->user, request.key, *request.device);
        if (!claim) return {}; // the graph is already restored
    } else if (is_for_everybody(graph)) {
        claim = m_state.graphs.claim(request.key, own_bytes(graph), *request.device, request.end, stop);
    }
    m_state.graphs.let_first_calls_pass(request.key, stop);
    LoadMarkScope mark{*m_store, request};
    if (request.function == nullptr) {
        const auto is_shared = load_code(request, graph, mark, stop);
        if (!is_shared) return std::unexpected(is_shared.error());
        if (!claim || !*is_shared) return {};
        m_state.graphs.let_first_calls_pass(request.key, stop);
    }
    if (stop.stop_requested()) return fail(ErrorCode::not_found, "preloading it was stopped");
    auto restored = restore(request, std::move(**entry), mark, stop);
    if (!restored) return std::unexpected(restored.error());
    restored->stamp = stamp;
    claim->succeed(std::move(*restored));
    return {};
} catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "out of host memory while it was restored");
}

} // namespace warmgraph
