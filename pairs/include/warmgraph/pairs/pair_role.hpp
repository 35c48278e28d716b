// The role of one function in a pair (pair_impl.hpp): the name of its entries, the order of launches that both halves
// share, and the forward that a backward belongs to.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/capture/scratch.hpp"
#include "warmgraph/pairs/pair_entries.hpp"

namespace warmgraph {

struct LastStream;

/// The forward that answered a call or was recorded from it.
struct ServedForward {
    cachefmt::RecordingId recording;
    bool waits = false; ///< whether its backward is not recorded yet
};

struct PairRole {
    cachefmt::Part part = cachefmt::Part::forward;
    std::string pair;                  ///< the pair's name and the folder of its entries
    std::string interface;             ///< text of the interfaces of both functions; it is a guard
    std::vector<cachefmt::Fact> facts; ///< facts of the pair, in addition to the facts that all functions have
    std::shared_ptr<PairEntries> entries;
    std::shared_ptr<LastStream> last;
    std::shared_ptr<ScratchPool> saved; ///< the arena that both halves share
    /// Checks each call's arguments before they are used.
    std::function<Result<void>(const Frame&)> check{};
    /// Returns the other function's memory, for messages. May be null.
    std::function<std::vector<NamedMemory>()> others{};

    /// The forward that the next call of backward belongs to. nullopt: that forward ran without a graph, so backward
    /// runs without a graph too.
    std::optional<ServedForward> of{};

    [[nodiscard]] bool is_forward() const noexcept { return part == cachefmt::Part::forward; }
    [[nodiscard]] bool runs_as_it_is() const noexcept { return !is_forward() && !of; }
    [[nodiscard]] bool counts_miss() const noexcept { return is_forward() || !of || !of->waits; }
    // A pair counts as recorded when its backward is recorded, and as hit when its forward is hit.
    [[nodiscard]] bool counts_recording() const noexcept { return !is_forward(); }
    [[nodiscard]] bool counts_hit() const noexcept { return is_forward(); }
};

/// Returns the part of a pair that a recording under these guards makes. Forward gets a new recording id, backward gets
/// the recording id of its forward.
[[nodiscard]] cachefmt::RecordingPart recording_of(cachefmt::Part part, const cachefmt::Guards& guards);

/// Names of the values that pass forward's recording id to backward. The id is a guard of backward.
inline constexpr const char* k_recording_values[] = {"pair.recording.high", "pair.recording.low"};

} // namespace warmgraph
