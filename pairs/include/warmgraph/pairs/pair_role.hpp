// What makes a function one of a pair's two (pair_impl.hpp): under which name its entries are stored, whose launches are in
// one order, and which forward a backward is for.
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

/// The forward that a call was answered by, or recorded as.
struct ServedForward {
    cachefmt::RecordingId recording;
    bool waits = false; ///< its backward is not recorded yet
};

struct PairRole {
    cachefmt::Part part = cachefmt::Part::forward;
    std::string pair;                  ///< its name: the folder of its entries
    std::string interface;             ///< of both functions, a guard
    std::vector<cachefmt::Fact> facts; ///< beside those that every function has
    std::shared_ptr<PairEntries> entries;
    std::shared_ptr<LastStream> last;
    std::shared_ptr<ScratchPool> saved; ///< the arena of both
    /// Of each call's arguments, before anything is done with them.
    std::function<Result<void>(const Frame&)> check{};
    /// Memory of the other function, for messages. May be null.
    std::function<std::vector<NamedMemory>()> others{};

    /// Of the forward that the next call of backward is for; none: that ran as it is, and so does this.
    std::optional<ServedForward> of{};

    [[nodiscard]] bool is_forward() const noexcept { return part == cachefmt::Part::forward; }
    [[nodiscard]] bool runs_as_it_is() const noexcept { return !is_forward() && !of; }
    [[nodiscard]] bool counts_miss() const noexcept { return is_forward() || !of || !of->waits; }
    // A pair is recorded when its backward is, and hit when its forward is.
    [[nodiscard]] bool counts_recording() const noexcept { return !is_forward(); }
    [[nodiscard]] bool counts_hit() const noexcept { return is_forward(); }
};

/// Of what is recorded under these guards: a new recording for forward, forward's own for backward.
[[nodiscard]] cachefmt::RecordingPart recording_of(cachefmt::Part part, const cachefmt::Guards& guards);

/// The values by which backward is given its forward's recording id, and which guard it.
inline constexpr const char* k_recording_values[] = {"pair.recording.high", "pair.recording.low"};

} // namespace warmgraph
