#include "warmgraph/preload/preloaded_graphs.hpp"

#include <algorithm>
#include <utility>

namespace warmgraph {

namespace {

/// Returns the memory that graphs for every function may use together. A table of 32 decode steps needs half a
/// gigabyte. A graph without room is restored by its first call.
std::uint64_t shared_room(const backends::Device& device) noexcept
{
    constexpr std::uint64_t k_least = 256ULL << 20U, k_part = 100;
    return std::max(k_least, device.limits().memory / k_part);
}

constexpr std::chrono::milliseconds k_longest_rest{100};

} // namespace

std::uint64_t own_bytes(const cachefmt::Graph& graph) noexcept
{
    std::uint64_t bytes = 0; // cannot overflow, because the decoder limits the number and the sizes of regions
    for (const auto& region : graph.regions)
        if (region.kind == cachefmt::RegionKind::arena || region.kind == cachefmt::RegionKind::constant)
            bytes += region.size;
    return bytes;
}

// --- first calls

PreloadedGraphs::PreloadPause::PreloadPause(PreloadedGraphs& graphs) : m_graphs(graphs)
{
    const std::scoped_lock lock{m_graphs.m_mutex};
    ++m_graphs.m_first_calls;
}

PreloadedGraphs::PreloadPause::~PreloadPause()
{
    const std::scoped_lock lock{m_graphs.m_mutex};
    --m_graphs.m_first_calls;
    m_graphs.m_changed.notify_all();
}

void PreloadedGraphs::let_first_calls_pass(const cachefmt::EntryKey& key, const std::stop_token& stop)
{
    const auto is_awaited = [&](const Slot& slot) { return slot.key == key && slot.is_awaited; };
    std::unique_lock lock{m_mutex};
    m_changed.wait_for(lock, stop, k_longest_rest,
                       [&] { return m_first_calls == 0 || std::ranges::any_of(m_slots, is_awaited); });
}

// --- graphs that are being restored

PreloadedGraphs::RestoreClaim::~RestoreClaim()
{
    const std::scoped_lock lock{m_graphs.m_mutex};
    std::erase_if(m_graphs.m_slots, [this](const Slot& slot) { return slot.number == m_number && !slot.graph; });
    m_graphs.m_changed.notify_all();
}

void PreloadedGraphs::RestoreClaim::succeed(PreloadedGraph graph) noexcept
{
    const std::scoped_lock lock{m_graphs.m_mutex};
    const auto slot = std::ranges::find(m_graphs.m_slots, m_number, &Slot::number);
    if (slot != m_graphs.m_slots.end()) slot->graph.emplace(std::move(graph));
}

bool PreloadedGraphs::may_hold(std::uint64_t bytes, const backends::Device& device) noexcept
{
    return bytes <= shared_room(device);
}

auto PreloadedGraphs::add(User user, const cachefmt::EntryKey& key, std::uint64_t bytes, const backends::Device& device)
    -> std::unique_ptr<RestoreClaim>
{
    if (std::ranges::any_of(m_slots, [&](const Slot& slot) { return slot.is_for(user, key, device); })) return nullptr;
    m_slots.push_back({m_next, user, key, &device, bytes});
    return std::unique_ptr<RestoreClaim>{new RestoreClaim{*this, m_next++}};
}

auto PreloadedGraphs::claim(const cachefmt::EntryKey& key, std::uint64_t bytes, const backends::Device& device,
                            std::chrono::steady_clock::time_point end, const std::stop_token& stop)
    -> std::unique_ptr<RestoreClaim>
{
    if (!may_hold(bytes, device)) return nullptr;
    const auto has_room = [&] {
        std::uint64_t all = bytes;
        for (const Slot& slot : m_slots) all += slot.bytes;
        return all <= shared_room(device);
    };
    std::unique_lock lock{m_mutex};
    if (!m_changed.wait_until(lock, stop, end, has_room)) return nullptr;
    return add(k_everybody, key, bytes, device);
}

auto PreloadedGraphs::claim_for(User user, const cachefmt::EntryKey& key, const backends::Device& device)
    -> std::unique_ptr<RestoreClaim>
{
    const std::scoped_lock lock{m_mutex};
    return add(user, key, 0, device);
}

// --- access to restored graphs

bool PreloadedGraphs::has(User user, const cachefmt::EntryKey& key, const backends::Device& device) const
{
    const std::scoped_lock lock{m_mutex};
    return std::ranges::any_of(m_slots, [&](const Slot& slot) { return slot.is_for(user, key, device); });
}

std::shared_ptr<const cachefmt::EntryHeader> PreloadedGraphs::loaded_header(User user, const cachefmt::EntryKey& key,
                                                                            const backends::Device& device) const
{
    const std::scoped_lock lock{m_mutex};
    for (const Slot& slot : m_slots)
        if (slot.graph && slot.graph->is_loaded && slot.is_for(user, key, device))
            return std::make_shared<const cachefmt::EntryHeader>(slot.graph->header);
    return nullptr;
}

template <class Fits>
auto PreloadedGraphs::extract(const Fits& fits) -> std::list<Slot>
{
    std::list<Slot> result;
    for (auto slot = m_slots.begin(); slot != m_slots.end();) {
        const auto next = std::next(slot);
        if (slot->graph && fits(*slot)) result.splice(result.end(), m_slots, slot);
        slot = next;
    }
    return result;
}

std::optional<PreloadedGraph> PreloadedGraphs::take(User user, const cachefmt::EntryKey& key,
                                                    const backends::Device& device)
{
    const auto fits = [&](const Slot& slot) { return slot.is_for(user, key, device); };
    std::unique_lock lock{m_mutex};
    for (Slot& slot : m_slots)
        if (fits(slot)) slot.is_awaited = true;
    m_changed.notify_all();
    m_changed.wait(lock, [&] {
        return std::ranges::none_of(m_slots, [&](const Slot& slot) { return fits(slot) && !slot.graph; });
    });
    auto found = extract(fits);
    lock.unlock();
    m_changed.notify_all(); // calls that wait may now have room
    for (Slot& slot : found)
        if (slot.graph->registrations == device.registrations()) return std::move(slot.graph);
    return std::nullopt;
}

template <class Fits>
void PreloadedGraphs::forget_if(const Fits& fits)
{
    std::list<Slot> forgotten; // destroyed after the lock is released
    const std::scoped_lock lock{m_mutex};
    forgotten = extract(fits);
    std::erase_if(m_slots, fits); // a restore that is still running will find no slot and drop its graph
    m_changed.notify_all();
}

void PreloadedGraphs::forget(const cachefmt::FunctionKey& function, const backends::Device& device)
{
    forget_if([&](const Slot& slot) {
        return slot.user == k_everybody && slot.key.function == function && slot.device == &device;
    });
}

void PreloadedGraphs::forget(User user)
{
    forget_if([user](const Slot& slot) { return slot.user == user; });
}

} // namespace warmgraph
