// Restores one stored entry before a call needs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "warmgraph/capture/interface.hpp"
#include "warmgraph/preload/last_addresses.hpp"
#include "warmgraph/preload/placeholder.hpp"
#include "warmgraph/preload/preloaded_graphs.hpp"
#include "warmgraph/replay/module_cache.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

/// A cache's preloaded graphs, and the facts that preloading needs.
struct PreloadState {
    PreloadedGraphs graphs;
    LastAddresses addresses;
    Placeholders placeholders;
};

/// A function that is already wrapped.
struct PreloadClient {
    PreloadedGraphs::User user = PreloadedGraphs::k_everybody;
    DeclaredHandles handles{};
    std::vector<MemoryRef> memory{}; ///< by region: the memory of declared states; null if calls provide the memory
    /// Whether the function may use the entry.
    std::function<Result<void>(const cachefmt::EntryHeader& header, const cachefmt::Graph& graph)> check{};
};

/// Thread-safe; concurrent calls restore a graph only once.
class EntryPreloader {
public:
    /// `state` and `modules` must outlive this object.
    EntryPreloader(PreloadState& state, std::shared_ptr<store::LocalStore> store, replay::ModuleCache& modules,
                   replay::ImageSource images);

    struct Request {
        cachefmt::EntryKey key;
        std::shared_ptr<backends::Device> device;
        store::LoadTarget target; ///< the load target of the device
        /// The function that will use the graph; null: the first function that calls it.
        const PreloadClient* function = nullptr;
        std::chrono::steady_clock::time_point end{}; ///< time at which the wait for room ends
        replay::Instantiation instantiation = replay::Instantiation::at_restore;
    };
    /// Loads the entry's device code, restores its graph, and does in advance what is possible of its first launch.
    /// Meanwhile a mark is on disk: drivers crash on some code, and the next process must know which code crashed. If
    /// there is no room for the graph, or not every function could use the graph (events, semaphores, host functions,
    /// code with state), loads only its code. Pauses during first calls.
    [[nodiscard]] Result<void> preload(const Request& request, const std::stop_token& stop) const;

private:
    class LoadMarkScope;
    [[nodiscard]] Result<bool> load_code(const Request& request, const cachefmt::Graph& graph, LoadMarkScope& mark,
                                         const std::stop_token& stop) const;
    [[nodiscard]] Result<PreloadedGraph> restore(const Request& request, cachefmt::Entry entry, LoadMarkScope& mark,
                                                 const std::stop_token& stop) const;

    PreloadState& m_state;
    std::shared_ptr<store::LocalStore> m_store;
    replay::ModuleCache& m_modules;
    replay::ImageSource m_images;
};

} // namespace warmgraph
