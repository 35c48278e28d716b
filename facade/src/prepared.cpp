#include "prepared.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "warmgraph/base/phases.hpp"

namespace warmgraph {

namespace {

/// What may be taken of a device for a call that may never come.
constexpr std::uint64_t k_most_bytes = 256ULL << 20U;

std::uint64_t rounded(std::uint64_t bytes) noexcept
{
    constexpr std::uint64_t k_step = cachefmt::k_max_alignment; // keeps every alignment class
    return (std::max<std::uint64_t>(bytes, 1) + k_step - 1) / k_step * k_step;
}

/// The calls' own memory, of which the entry has none.
bool is_callers(const cachefmt::Region& region) noexcept
{
    return region.kind != cachefmt::RegionKind::arena && region.kind != cachefmt::RegionKind::constant;
}

} // namespace

bool is_preparable(const cachefmt::Graph& graph) noexcept
{
    if (!graph.events.empty() || !graph.semaphores.empty()) return false;
    const auto calls_host = [](const auto& node) { return std::holds_alternative<cachefmt::HostNode>(node); };
    const auto is_on_device = [](const auto& region) { return region.space == cachefmt::MemorySpace::device; };
    return std::ranges::none_of(graph.nodes, calls_host) && std::ranges::all_of(graph.regions, is_on_device);
}

std::uint64_t own_bytes(const cachefmt::Graph& graph) noexcept
{
    std::uint64_t bytes = 0; // the decoder has bounded their number and sizes
    for (const auto& region : graph.regions)
        if (!is_callers(region)) bytes += region.size;
    return bytes;
}

Result<Prepared> prepare(const std::shared_ptr<backends::Device>& device, cachefmt::Entry entry,
                         replay::ModuleCache& modules, const replay::ImageSource& images)
{
    const std::uint64_t registrations = device->registrations(), exposures = device->exposures();
    std::uint64_t bytes = 0; // of all: nodes that copy from one into another must not overlap
    for (const auto& region : entry.graph.regions)
        if (is_callers(region)) bytes += rounded(region.size);
    if (bytes > k_most_bytes && !device->limits().flat_addresses)
        return fail(ErrorCode::out_of_memory, "its regions have {} bytes, placeholders at most {}", bytes,
                    k_most_bytes);
    auto placeholder = Placeholder::reserve(device, rounded(bytes));
    if (!placeholder) return std::unexpected(placeholder.error());
    replay::Bindings bindings;
    std::uint64_t used = 0;
    for (const auto& region : entry.graph.regions) {
        if (!is_callers(region)) {
            bindings.regions.emplace_back();
            continue;
        }
        bindings.regions.push_back({(*placeholder)->memory().address + used, rounded(region.size)});
        used += rounded(region.size);
    }
    bindings.scalars.resize(entry.graph.scalars.size());
    Phases phases;
    // Instantiated now, all of it would have to be given other addresses at its first launch, which takes longer than
    // to enqueue it node by node and instantiate it behind that; and graphs that nobody calls would be instantiated, too.
    replay::Loading loading;
    loading.instantiation = replay::Instantiation::later;
    auto executable = replay::Executable::restore(device, std::move(entry.graph), modules, images, bindings, phases,
                                                  replay::RegisteredModules::bind, replay::k_nobody.function, &loading);
    if (!executable) return std::unexpected(executable.error());
    return Prepared{std::move(entry.header), std::move(*executable), std::move(*placeholder), registrations, exposures};
}

PreparedGraphs::Turn::Turn(PreparedGraphs& graphs, const cachefmt::EntryKey& key, const backends::Device& device)
    : m_graphs(graphs), m_number([&] {
          const std::scoped_lock lock{graphs.m_mutex};
          graphs.m_slots.push_back({graphs.m_next, key, &device});
          return graphs.m_next++;
      }())
{
}

PreparedGraphs::Turn::~Turn()
{
    const std::scoped_lock lock{m_graphs.m_mutex};
    std::erase_if(m_graphs.m_slots, [this](const Slot& slot) { return slot.number == m_number && !slot.graph; });
    m_graphs.m_changed.notify_all();
}

void PreparedGraphs::Turn::succeed(Prepared graph) noexcept
{
    const std::scoped_lock lock{m_graphs.m_mutex};
    const auto slot = std::ranges::find(m_graphs.m_slots, m_number, &Slot::number);
    if (slot != m_graphs.m_slots.end()) slot->graph.emplace(std::move(graph));
}

bool PreparedGraphs::has_room_for(const cachefmt::Graph& graph)
{
    if (!is_preparable(graph)) return false;
    std::uint64_t bytes = own_bytes(graph);
    const std::scoped_lock lock{m_mutex};
    for (const Slot& slot : m_slots)
        if (slot.graph) bytes += own_bytes(slot.graph->executable->graph());
    return bytes <= k_most_bytes;
}

bool PreparedGraphs::has(const cachefmt::EntryKey& key, const backends::Device& device)
{
    const std::scoped_lock lock{m_mutex};
    return std::ranges::any_of(m_slots, [&](const Slot& slot) { return slot.is_meant(key, device); });
}

template <class Fits>
auto PreparedGraphs::extracted(const Fits& fits) -> std::list<Slot>
{
    std::list<Slot> result;
    for (auto slot = m_slots.begin(); slot != m_slots.end();) {
        const auto next = std::next(slot);
        if (slot->graph && fits(*slot)) result.splice(result.end(), m_slots, slot);
        slot = next;
    }
    return result;
}

std::optional<Prepared> PreparedGraphs::take(const cachefmt::EntryKey& key, const cachefmt::Entry& entry,
                                             const backends::Device& device)
{
    const auto is_meant = [&](const Slot& slot) { return slot.is_meant(key, device); };
    const auto is_under_way = [&](const Slot& slot) { return is_meant(slot) && !slot.graph; };
    std::unique_lock lock{m_mutex};
    m_changed.wait(lock, [&] { return std::ranges::none_of(m_slots, is_under_way); });
    auto found = extracted(is_meant);
    lock.unlock();
    for (Slot& slot : found) {
        Prepared& graph = *slot.graph;
        const bool is_current = graph.registrations == device.registrations() && graph.exposures == device.exposures();
        if (is_current && graph.header == entry.header && graph.executable->graph() == entry.graph)
            return std::move(graph);
    }
    return std::nullopt;
}

void PreparedGraphs::forget(const cachefmt::FunctionKey& function, const backends::Device& device)
{
    std::list<Slot> forgotten;
    const std::scoped_lock lock{m_mutex};
    forgotten = extracted([&](const Slot& slot) { return slot.key.function == function && slot.device == &device; });
}

} // namespace warmgraph
