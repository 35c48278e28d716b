// Graphs that Cache::prefetch restores before anybody asks for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "preload/known_places.hpp"
#include "preload/placeholder.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph {

/// A restored graph whose regions are where they are likely to be, or at placeholder addresses: its first launch rebinds those
/// that are elsewhere.
struct Prepared {
    cachefmt::EntryHeader header;
    std::unique_ptr<replay::Executable> executable;
    std::shared_ptr<const Placeholder> placeholder; ///< null where none of its regions needs memory
    std::uint64_t registrations = 0;                ///< of the device, before it was restored
    store::Stamp stamp{};                           ///< of the file that it was read from
};

/// Can the graph be restored by somebody who knows nothing of its function but the entry? Not where the function gives
/// more than memory (events, semaphores, host functions).
[[nodiscard]] bool is_preparable(const cachefmt::Graph& graph) noexcept;
/// What it takes of the device besides its callers' memory.
[[nodiscard]] std::uint64_t own_bytes(const cachefmt::Graph& graph) noexcept;

/// Restores it, and takes from its first launch what can be done ahead of that. `modules` holds its images already, and none of
/// them keeps state. `places`: where its regions may be. `rest` is called before the last step.
[[nodiscard]] Result<Prepared> prepare(const std::shared_ptr<backends::Device>& device, cachefmt::Entry entry,
                                       replay::ModuleCache& modules, const replay::ImageSource& images,
                                       const KnownPlaces& places, const std::function<void()>& rest);

/// The prepared graphs of one cache; each goes to the first call that needs it. Thread-safe.
class PreparedGraphs {
public:
    /// Somebody restores it from now on, until the object goes: who needs it waits meanwhile.
    class Turn {
    public:
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn();
        void succeed(Prepared graph) noexcept;

    private:
        friend PreparedGraphs;
        Turn(PreparedGraphs& graphs, std::uint64_t number) noexcept : m_graphs(graphs), m_number(number) {}
        PreparedGraphs& m_graphs;
        const std::uint64_t m_number;
    };

    /// Whether who knows the entry alone can restore it, and there is room for it on an idle device.
    [[nodiscard]] static bool may_hold(const cachefmt::Graph& graph, const backends::Device& device) noexcept;
    /// Nobody may ever call what is prepared, so all of it together takes at most a hundredth of the device's memory, or 256
    /// MiB. Waits until there is room, as calls take what is there, but not beyond `end`. Null: there was none, or nobody who
    /// knows the entry alone can restore it.
    [[nodiscard]] std::unique_ptr<Turn> turn(const cachefmt::EntryKey& key, const cachefmt::Graph& graph,
                                             const backends::Device& device, std::chrono::steady_clock::time_point end,
                                             const std::stop_token& stop);
    /// Whether one of this entry is there or under way.
    [[nodiscard]] bool has(const cachefmt::EntryKey& key, const backends::Device& device);
    /// The graph of this entry, as the device's modules are; waits for one that is under way. Whether the entry is still the
    /// one on disk is the caller's to see.
    [[nodiscard]] std::optional<Prepared> take(const cachefmt::EntryKey& key, const backends::Device& device);
    /// What was prepared of this function goes away, and what is under way when it is done.
    void forget(const cachefmt::FunctionKey& function, const backends::Device& device);

private:
    struct Slot {
        std::uint64_t number = 0;
        cachefmt::EntryKey key;
        const backends::Device* device = nullptr;
        std::uint64_t bytes = 0;         ///< own_bytes
        std::optional<Prepared> graph{}; ///< none while it is under way
        [[nodiscard]] bool is_meant(const cachefmt::EntryKey& whose, const backends::Device& where) const noexcept
        {
            return key == whose && device == &where;
        }
    };
    /// Takes out of the list what is done and fits, so that it is destroyed without the lock.
    template <class Fits>
    [[nodiscard]] std::list<Slot> extracted(const Fits& fits); // with m_mutex

    std::mutex m_mutex; // guards the rest
    std::condition_variable_any m_changed;
    std::list<Slot> m_slots;
    std::uint64_t m_next = 0;
};

} // namespace warmgraph
