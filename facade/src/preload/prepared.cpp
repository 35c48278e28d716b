#include "preload/prepared.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/phases.hpp"

namespace warmgraph {

namespace {

/// What placeholders may take of a device for a call that may never come.
constexpr std::uint64_t k_most_bytes = 256ULL << 20U;

/// What the graphs may, which keep it when they are called: a table of 32 decode steps has half a gigabyte, and what finds no
/// room is restored beside the calls.
std::uint64_t most_own_bytes(const backends::Device& device) noexcept
{
    constexpr std::uint64_t k_part = 100;
    return std::max(k_most_bytes, device.limits().memory / k_part);
}

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

namespace {

/// Where nothing lies (far_addresses.hpp), and nothing ever runs: what a kernel is given are bytes to the driver. Distinct, as
/// nothing that overlaps may be copied into itself.
constexpr std::uint64_t k_nowhere = 1ULL << 46U;

/// Bindings for a graph whose calls are not known.
struct Guess {
    replay::Bindings bindings;
    std::shared_ptr<const Placeholder> placeholder;
    bool may_be_seen = true; ///< by the driver: there is memory wherever it looks
};

/// Where the region was in another function's call, if it may be there in this one's.
std::optional<MemoryRef> guessed(const backends::Device& device, const cachefmt::Region& region, bool is_looked_at,
                                 const KnownPlaces& places)
{
    if (region.kind == cachefmt::RegionKind::output) return std::nullopt; // each has its own
    const auto place = places.find(device, region.name);
    if (!place || place->is_null() || place->offset % region.alignment != 0) return std::nullopt;
    const auto is_there = [&](std::uint64_t offset) { return device.space_of(*place + offset) == region.space; };
    if (is_looked_at && !(is_there(0) && is_there(region.size == 0 ? 0 : region.size - 1))) return std::nullopt;
    return MemoryRef{*place, region.size};
}

Result<Guess> guess(const std::shared_ptr<backends::Device>& device, const cachefmt::Graph& graph,
                    const KnownPlaces& places)
{
    const auto looked_at = replay::regions_looked_at(graph);
    const bool is_flat = device->limits().flat_addresses;
    Guess result;
    result.bindings.regions.resize(graph.regions.size());
    result.bindings.scalars.resize(graph.scalars.size());
    std::vector<std::size_t> in_memory;
    std::uint64_t bytes = 0, nowhere = 0;
    for (std::size_t i = 0; i < graph.regions.size(); ++i) {
        const cachefmt::Region& region = graph.regions[i];
        if (!is_callers(region)) continue;
        const auto place = is_flat ? guessed(*device, region, looked_at[i], places) : std::nullopt;
        if (place) {
            result.bindings.regions[i] = *place;
        } else if (is_flat && !looked_at[i]) {
            result.bindings.regions[i] = {Address::from_flat(k_nowhere + nowhere), rounded(region.size)};
            nowhere += rounded(region.size);
        } else {
            in_memory.push_back(i);
            bytes += rounded(region.size);
        }
    }
    result.may_be_seen = bytes <= k_most_bytes;
    if (!result.may_be_seen && !is_flat)
        return fail(ErrorCode::out_of_memory, "its regions have {} bytes, placeholders at most {}", bytes,
                    k_most_bytes);
    Address next = Address::from_flat(k_nowhere + nowhere);
    if (result.may_be_seen && bytes != 0) {
        auto placeholder = Placeholder::reserve(device, bytes);
        if (!placeholder) return std::unexpected(placeholder.error());
        result.placeholder = std::move(*placeholder);
        next = result.placeholder->memory().address;
    }
    for (const std::size_t i : in_memory) {
        result.bindings.regions[i] = {next, rounded(graph.regions[i].size)};
        next = next + rounded(graph.regions[i].size);
    }
    return result;
}

} // namespace

Result<Prepared> prepare(const std::shared_ptr<backends::Device>& device, cachefmt::Entry entry,
                         replay::ModuleCache& modules, const replay::ImageSource& images, const KnownPlaces& places,
                         const std::function<void()>& rest)
{
    const std::uint64_t registrations = device->registrations();
    auto guess_of = guess(device, entry.graph, places);
    if (!guess_of) return std::unexpected(guess_of.error());
    Phases phases;
    replay::Loading loading;
    if (!guess_of->may_be_seen) loading.instantiation = replay::Instantiation::at_launch;
    auto executable =
        replay::Executable::restore(device, std::move(entry.graph), modules, images, guess_of->bindings, phases,
                                    replay::RegisteredModules::bind, replay::k_nobody.function, &loading);
    if (!executable) return std::unexpected(executable.error());
    rest();
    if (guess_of->may_be_seen)
        if (auto uploaded = (**executable).upload(); !uploaded)
            log().debug("a graph is not uploaded ahead: {}", uploaded.error().message);
    return Prepared{std::move(entry.header), std::move(*executable), std::move(guess_of->placeholder), registrations};
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

bool PreparedGraphs::may_hold(const cachefmt::Graph& graph, const backends::Device& device) noexcept
{
    return is_preparable(graph) && own_bytes(graph) <= most_own_bytes(device);
}

std::unique_ptr<PreparedGraphs::Turn> PreparedGraphs::turn(const cachefmt::EntryKey& key, const cachefmt::Graph& graph,
                                                           const backends::Device& device,
                                                           std::chrono::steady_clock::time_point end,
                                                           const std::stop_token& stop)
{
    const std::uint64_t bytes = own_bytes(graph), most = most_own_bytes(device);
    if (!may_hold(graph, device)) return nullptr;
    const auto has_room = [&] {
        std::uint64_t all = bytes;
        for (const Slot& slot : m_slots) all += slot.bytes;
        return all <= most;
    };
    std::unique_lock lock{m_mutex};
    if (!m_changed.wait_until(lock, stop, end, has_room)) return nullptr;
    m_slots.push_back({m_next, key, &device, bytes});
    return std::unique_ptr<Turn>{new Turn{*this, m_next++}};
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

std::optional<Prepared> PreparedGraphs::take(const cachefmt::EntryKey& key, const backends::Device& device)
{
    const auto is_meant = [&](const Slot& slot) { return slot.is_meant(key, device); };
    const auto is_under_way = [&](const Slot& slot) { return is_meant(slot) && !slot.graph; };
    std::unique_lock lock{m_mutex};
    m_changed.wait(lock, [&] { return std::ranges::none_of(m_slots, is_under_way); });
    auto found = extracted(is_meant);
    lock.unlock();
    m_changed.notify_all(); // there is room
    for (Slot& slot : found) {
        Prepared& graph = *slot.graph;
        if (graph.registrations == device.registrations()) return std::move(graph);
    }
    return std::nullopt;
}

void PreparedGraphs::forget(const cachefmt::FunctionKey& function, const backends::Device& device)
{
    std::list<Slot> forgotten; // goes without the lock
    const std::scoped_lock lock{m_mutex};
    const auto is_of_it = [&](const Slot& slot) { return slot.key.function == function && slot.device == &device; };
    forgotten = extracted(is_of_it);
    std::erase_if(m_slots, is_of_it); // under way: there is no place for it when it is done
    m_changed.notify_all();
}

} // namespace warmgraph
