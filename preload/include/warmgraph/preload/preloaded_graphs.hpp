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

/// A restored graph with guessed addresses for its regions, or placeholder addresses. Its first launch rebinds the
/// regions whose addresses were wrong.
struct PreloadedGraph {
    cachefmt::EntryHeader header;
    std::unique_ptr<replay::Executable> executable;
    std::shared_ptr<const Placeholder> placeholder; ///< null if no region needs memory
    std::uint64_t registrations = 0;                ///< the device's count of registrations before the restore
    store::Stamp stamp{};                           ///< stamp of the file from which it was read
    /// Whether it was restored for a wrapped function, as if that function had loaded it. Later changes of the file
    /// then do not matter.
    bool is_loaded = false;
};

/// Returns the bytes of device memory that the graph needs besides its callers' memory.
[[nodiscard]] std::uint64_t own_bytes(const cachefmt::Graph& graph) noexcept;

/// The preloaded graphs of one cache; the first call that needs a graph takes it. Thread-safe.
class PreloadedGraphs {
public:
    /// The user that may take a graph: every function, or one function (replay::ModuleUser).
    using User = std::uint64_t;
    static constexpr User k_everybody = replay::k_nobody.function;

    /// A graph that is being restored while this object lives. A call that needs the graph waits meanwhile.
    class RestoreClaim {
    public:
        RestoreClaim(const RestoreClaim&) = delete;
        RestoreClaim& operator=(const RestoreClaim&) = delete;
        ~RestoreClaim();
        void succeed(PreloadedGraph graph) noexcept;

    private:
        friend PreloadedGraphs;
        RestoreClaim(PreloadedGraphs& graphs, std::uint64_t number) noexcept : m_graphs(graphs), m_number(number) {}
        PreloadedGraphs& m_graphs;
        const std::uint64_t m_number;
    };

    /// A first call. Preloading pauses meanwhile, because preloading and the call would slow each other down. The pause
    /// has a limit, because the call may wait for something outside.
    class PreloadPause {
    public:
        explicit PreloadPause(PreloadedGraphs& graphs);
        PreloadPause(const PreloadPause&) = delete;
        PreloadPause& operator=(const PreloadPause&) = delete;
        ~PreloadPause();

    private:
        PreloadedGraphs& m_graphs;
    };
    /// Waits until no first call runs, a call waits for this entry's graph, or 0.1 s have passed.
    void let_first_calls_pass(const cachefmt::EntryKey& key, const std::stop_token& stop);

    /// Whether graphs that may never be called may use `bytes` of memory. Their limit, for all together, is a hundredth
    /// of the device's memory, or 256 MiB if that is more.
    [[nodiscard]] static bool may_hold(std::uint64_t bytes, const backends::Device& device) noexcept;
    /// Begins the restore of a graph that every function may take and that needs `bytes`. Waits for room, which calls
    /// free by taking graphs, at most until `end`. Null: no room, or the graph is already here.
    [[nodiscard]] std::unique_ptr<RestoreClaim> claim(const cachefmt::EntryKey& key, std::uint64_t bytes,
                                                      const backends::Device& device,
                                                      std::chrono::steady_clock::time_point end,
                                                      const std::stop_token& stop);
    /// Begins the restore of a graph for one function. Room is not limited. Null: the graph is already here.
    [[nodiscard]] std::unique_ptr<RestoreClaim> claim_for(User user, const cachefmt::EntryKey& key,
                                                          const backends::Device& device);
    /// Whether the entry's graph for this user is here or being restored.
    [[nodiscard]] bool has(User user, const cachefmt::EntryKey& key, const backends::Device& device) const;
    /// Returns the header of a loaded graph (PreloadedGraph::is_loaded); null if the graph is not here.
    [[nodiscard]] std::shared_ptr<const cachefmt::EntryHeader> loaded_header(User user, const cachefmt::EntryKey& key,
                                                                             const backends::Device& device) const;
    /// Takes the entry's graph if it fits the device's registered modules; waits for a graph that is being restored.
    /// The caller must check that the entry on disk is still the same.
    [[nodiscard]] std::optional<PreloadedGraph> take(User user, const cachefmt::EntryKey& key,
                                                     const backends::Device& device);
    /// Removes the function's graphs that every function may take, including graphs that are being restored.
    void forget(const cachefmt::FunctionKey& function, const backends::Device& device);
    /// Removes the graphs of a destroyed user.
    void forget(User user);

private:
    struct Slot {
        std::uint64_t number = 0;
        User user = k_everybody;
        cachefmt::EntryKey key;
        const backends::Device* device = nullptr;
        std::uint64_t bytes = 0; ///< the graph's bytes, out of the room that graphs for every function share
        bool is_awaited = false;
        std::optional<PreloadedGraph> graph{}; ///< nullopt while it is being restored
        [[nodiscard]] bool is_for(User who, const cachefmt::EntryKey& whose,
                                  const backends::Device& where) const noexcept
        {
            return (user == k_everybody || user == who) && key == whose && device == &where;
        }
    };
    [[nodiscard]] std::unique_ptr<RestoreClaim> add(User user, const cachefmt::EntryKey& key, std::uint64_t bytes,
                                                    const backends::Device& device); // REQUIRES: m_mutex is held
    /// Removes the finished slots for which `fits` is true, and returns them. The caller destroys them after it
    /// releases the lock.
    template <class Fits>
    [[nodiscard]] std::list<Slot> extract(const Fits& fits); // REQUIRES: m_mutex is held
    template <class Fits>
    void forget_if(const Fits& fits);

    mutable std::mutex m_mutex; // guards the other members
    std::condition_variable_any m_changed;
    std::list<Slot> m_slots;
    std::uint64_t m_next = 0;
    int m_first_calls = 0;
};

} // namespace warmgraph
