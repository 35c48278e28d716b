// Adoption: a graph that another framework captured (a CUgraph) becomes an entry.
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

/// A captured graph and the addresses of its memory. The caller keeps the graph; it is not changed.
struct NativeCapture {
    void* graph = nullptr; ///< CUgraph
    /// Memory of inputs, outputs and states, by their names in the Spec. A state that is left out lies where the Spec
    /// says.
    std::vector<std::pair<std::string, MemoryRef>> regions{};
    /// Memory that the graph uses as scratch (the framework's memory pools, workspaces), by names of your choice. The
    /// restored graph gets memory of its own for it.
    std::vector<std::pair<std::string, MemoryRef>> scratch{};
    /// Events that the graph records or waits for (CUevent), by name; empty: the events of Spec::events.
    std::vector<std::pair<std::string, void*>> events{};
    /// External semaphores that the graph signals or waits for (CUexternalSemaphore), by name; empty: the semaphores of
    /// Spec::semaphores.
    std::vector<std::pair<std::string, void*>> semaphores{};
    /// Values that Spec::scalars had at the capture, by name. In an adopted graph a scalar can only set the value of a
    /// semaphore. Give each scalar another value in the second capture, and change each by a different amount: the
    /// amount shows which scalar sets which value.
    std::vector<std::pair<std::string, Number>> scalars{};
    /// Memory that nothing used while the graph was captured. List the blocks that the framework's allocator had unused
    /// both before and after the capture, except those of the graph's own pool. List also the memory that the allocator
    /// took from the driver after the capture. The graph cannot use an address in this memory. Without this list, a
    /// stale pointer in uninitialised padding looks like a pointer to undeclared memory, and the graph is refused.
    std::vector<MemoryRef> free_blocks{};
};

/// Fills 128 KiB of the calling thread's stack below the caller with zeros, or does nothing if the stack has less room
/// left. A program that captures calls it in the capturing thread before each call of a library. Libraries pass kernel
/// parameters with bytes that they never wrote. There, bytes that earlier calls left on the stack may look like an
/// address; the graph is then refused. Takes 3 us. Thread-safe.
WARMGRAPH_API void clear_stack() noexcept;

/// The treatment of a parameter word whose value lies in a region, if no second capture proved that it is an address.
enum class Unproven : std::uint8_t {
    refuse, ///< the graph is refused
    allow,  ///< the word is taken for an address
};

/// One half of a pair whose graphs are adopted one by one, backward first. A process replays both halves or neither.
struct AdoptedPart {
    std::uint64_t high = 0, low = 0; ///< the recording id: 128 random bits, the same for both halves
    PairHalf half = PairHalf::forward;
};

struct Adoption {
    NativeCapture first;
    /// The same work, captured with all of its regions and scratch elsewhere. The second capture proves which words are
    /// addresses.
    std::optional<NativeCapture> second{};
    Unproven unproven = Unproven::refuse;
    /// Values that Spec::values had at the capture, by name.
    std::vector<std::pair<std::string, Number>> values{};
    /// A folder, instead of `second`, in which another process wrote its capture of the same call
    /// (Cache::write_capture). It proves addresses only where that process's allocator put the memory elsewhere. A
    /// folder that other users may write is not read, because they could fake the proof.
    std::string captures{};
    /// `after_run` and `agreement` check that the graph does what the function does. A function may enqueue other work
    /// while it is captured; then both captures and the entry agree with each other, but not with the function. So the
    /// caller runs the function from the same contents and compares. `after_run` is called after each run of the
    /// original graph, while its results lie in the first capture's memory. `agreement` is called after the last run,
    /// and returns how the results agree ("bitwise"), which `warmgraph show` prints. An exception that one of them
    /// throws refuses the graph: not_recordable with its message. Both run in the thread that adopts, after the graph
    /// was found to touch declared memory alone. Empty: nothing proves that the graph does what the function does.
    std::function<void()> after_run{};
    std::function<std::string()> agreement{};
    /// The half that this entry is. The cache keeps, evicts and removes it together with its other half. nullopt: the
    /// entry is used alone.
    std::optional<AdoptedPart> part{};
    /// How much larger some numbers of the caller's program were in the second capture than in the first; 0: none was. A
    /// word that moved by a multiple of this distance, as an integer or as a floating-point number, is made from such a
    /// number, and the graph is refused. A distance of a million or more hardly ever occurs by chance.
    std::int64_t number_distance = 0;
};

} // namespace warmgraph
