// Graphs that were restored before a call needs them (Cache::preload).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/preload/placeholder.hpp"
#include "warmgraph/replay/executable.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph {

/// A restored graph whose regions are where they are likely to be, or at placeholder addresses: its first launch rebinds those
/// that are elsewhere.
struct PreloadedGraph {
    cachefmt::EntryHeader header;
    std::unique_ptr<replay::Executable> executable;
    std::shared_ptr<const Placeholder> placeholder; ///< null where none of its regions needs memory
    std::uint64_t registrations = 0;                ///< of the device, before it was restored
    store::Stamp stamp{};                           ///< of the file that it was read from
    /// It was restored for a function that is wrapped, as if that had loaded it: it stands whatever becomes of the file.
    bool is_loaded = false;
};

/// What the graph takes of the device besides its callers' memory.
[[nodiscard]] std::uint64_t own_bytes(const cachefmt::Graph& graph) noexcept;

/// The preloaded graphs of one cache; each goes to the first call that needs it. Thread-safe.
class PreloadedGraphs {
public:
    /// Who may take a graph: everybody, or one function (replay::ModuleUser).
    using User = std::uint64_t;
    static constexpr User k_everybody = replay::k_nobody.function;

    /// A graph that is being restored until the object goes: a call that needs it waits meanwhile.
    class Turn {
    public:
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn();
        void succeed(PreloadedGraph graph) noexcept;

    private:
        friend PreloadedGraphs;
        Turn(PreloadedGraphs& graphs, std::uint64_t number) noexcept : m_graphs(graphs), m_number(number) {}
        PreloadedGraphs& m_graphs;
        const std::uint64_t m_number;
    };

    /// A call that has nothing to replay yet: preloading rests meanwhile, as both are slower beside each other. Not for long,
    /// as the call may in turn wait for the outside.
    class FirstCall {
    public:
        explicit FirstCall(PreloadedGraphs& graphs);
        FirstCall(const FirstCall&) = delete;
        FirstCall& operator=(const FirstCall&) = delete;
        ~FirstCall();

    private:
        PreloadedGraphs& m_graphs;
    };
    /// Returns when no first call is under way, one waits for this entry's graph, or 0.1 s have passed.
    void let_first_calls_pass(const cachefmt::EntryKey& key, const std::stop_token& stop);

    /// Whether so much memory may be taken for a graph that nobody may ever call: all of them together take at most a hundredth
    /// of the device's memory, or 256 MiB.
    [[nodiscard]] static bool may_hold(std::uint64_t bytes, const backends::Device& device) noexcept;
    /// A graph of `bytes` for everybody. Waits until there is room, as calls take what is there, but not beyond `end`. Null: there
    /// was no room, or the graph is here already.
    [[nodiscard]] std::unique_ptr<Turn> turn(const cachefmt::EntryKey& key, std::uint64_t bytes,
                                             const backends::Device& device, std::chrono::steady_clock::time_point end,
                                             const std::stop_token& stop);
    /// A graph for one function that wants it: there is always room. Null: it is here already.
    [[nodiscard]] std::unique_ptr<Turn> turn_for(User user, const cachefmt::EntryKey& key,
                                                 const backends::Device& device);
    /// Whether this user finds the entry's graph here, or under way.
    [[nodiscard]] bool has(User user, const cachefmt::EntryKey& key, const backends::Device& device) const;
    /// The header of a graph that is loaded (PreloadedGraph::is_loaded); null: it is not here.
    [[nodiscard]] std::shared_ptr<const cachefmt::EntryHeader> loaded_header(User user, const cachefmt::EntryKey& key,
                                                                             const backends::Device& device) const;
    /// The graph of this entry, as the device's modules are; waits for one that is under way. Whether the entry is still the
    /// one on disk is the caller's to see.
    [[nodiscard]] std::optional<PreloadedGraph> take(User user, const cachefmt::EntryKey& key,
                                                     const backends::Device& device);
    /// The graphs of this function that are for everybody go away, and those under way when they are done.
    void forget(const cachefmt::FunctionKey& function, const backends::Device& device);
    /// The graphs of a user that went.
    void forget(User user);

private:
    struct Slot {
        std::uint64_t number = 0;
        User user = k_everybody;
        cachefmt::EntryKey key;
        const backends::Device* device = nullptr;
        std::uint64_t bytes = 0; ///< of the room that all share
        bool is_awaited = false;
        std::optional<PreloadedGraph> graph{}; ///< none while it is under way
        [[nodiscard]] bool is_for(User who, const cachefmt::EntryKey& whose,
                                  const backends::Device& where) const noexcept
        {
            return (user == k_everybody || user == who) && key == whose && device == &where;
        }
    };
    [[nodiscard]] std::unique_ptr<Turn> add(User user, const cachefmt::EntryKey& key, std::uint64_t bytes,
                                            const backends::Device& device); // with m_mutex
    /// The slots that are done and fit leave the list, so that they are destroyed without the lock.
    template <class Fits>
    [[nodiscard]] std::list<Slot> extract(const Fits& fits); // with m_mutex
    template <class Fits>
    void forget_if(const Fits& fits);

    mutable std::mutex m_mutex; // guards the rest
    std::condition_variable_any m_changed;
    std::list<Slot> m_slots;
    std::uint64_t m_next = 0;
    int m_first_calls = 0;
};

} // namespace warmgraph
