// Adoption: a graph that somebody else captured (another framework's CUgraph) becomes an entry.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/arguments.hpp"
#include "warmgraph/device.hpp"
#include "warmgraph/pair.hpp"

namespace warmgraph {

/// A captured graph, and where its memory was. The graph stays the caller's and is left as it is.
struct NativeCapture {
    void* graph = nullptr; ///< CUgraph
    /// Inputs, outputs and states by their name in the Spec. A state that is left out is where the Spec says.
    std::vector<std::pair<std::string, MemoryRef>> regions{};
    /// Memory that the graph uses as scratch (the framework's memory pools, workspaces), by names of your choice: the
    /// restored graph gets its own.
    std::vector<std::pair<std::string, MemoryRef>> scratch{};
    /// Events that the graph records or waits for (CUevent), by name; empty: those of Spec::events.
    std::vector<std::pair<std::string, void*>> events{};
    /// External semaphores that it signals or waits for (CUexternalSemaphore), by name; empty: those of
    /// Spec::semaphores.
    std::vector<std::pair<std::string, void*>> semaphores{};
    /// What Spec::scalars were when it was captured, by name. Only the values of semaphores can follow them, and every
    /// scalar differs between the two captures by a distance of its own: it proves which values follow which.
    std::vector<std::pair<std::string, Number>> scalars{};
    /// Ranges of live allocations that nobody owned while the graph was captured: what a framework's allocator had free
    /// in its caches both before and after (of the graph's own pool: nothing), and what it has allocated since. No
    /// address there is one that the graph follows. Without them a stale pointer in padding that nobody initialised is
    /// taken for a pointer to undeclared memory, and refused.
    std::vector<MemoryRef> free_blocks{};
};

/// For programs that capture: call it in the capturing thread before each library's call. It fills 128 KiB of the
/// thread's stack below the caller with zeros (nothing where there is less to spare). Libraries hand on bytes of
/// parameters that they never wrote, and what earlier calls left there may look like an address: such a graph is
/// refused now and then. Takes 3 us. Thread-safe.
WARMGRAPH_API void clear_stack() noexcept;

/// Words of parameters that lie in a region, where no second capture proved them to be addresses by moving them.
enum class Unproven : std::uint8_t { refuse, allow };

/// Forward or backward of a pair whose graphs are adopted one by one, backward first. Who replays them uses both or none.
struct AdoptedPart {
    std::uint64_t high = 0, low = 0; ///< the recording id: 128 random bits, the same for both
    PairHalf half = PairHalf::forward;
};

struct Adoption {
    NativeCapture first;
    /// The same work captured with all of its regions and scratch elsewhere: it proves which words are addresses.
    std::optional<NativeCapture> second{};
    Unproven unproven = Unproven::refuse;
    /// What Spec::values were when it was captured, by name.
    std::vector<std::pair<std::string, Number>> values{};
    /// Instead of `second`: a folder where another process wrote its capture of the same call (Cache::write_capture). Its
    /// memory lay elsewhere, as far as the process's allocator put it elsewhere. Who may write the folder decides what is
    /// taken for proven: one that others may write is not read.
    std::string captures{};
    /// A function may enqueue something else while it is captured, and then both captures and the entry agree with each
    /// other, and not with the function. Whoever ran it as it is from the same contents holds the graph to that:
    /// `after_run` is called after each run of the original, while its results lie in the first capture's memory, and
    /// `agreement` after the last of them. It gives how they agree ("bitwise"), which `warmgraph show` says. What either
    /// throws refuses the graph (not_recordable, with its message). Both run in the thread that adopts, once the graph is
    /// known to touch declared memory alone. Empty: nothing proves that the graph does what the function does.
    std::function<void()> after_run{};
    std::function<std::string()> agreement{};
    /// Then the cache keeps, evicts and removes the entry together with its other one. None: it is used alone.
    std::optional<AdoptedPart> part{};
};

} // namespace warmgraph
