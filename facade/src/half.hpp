// What makes a function one half of a pair (pair_impl.hpp): whose entries are joined, whose launches are in one order,
// and which of forward's guards backward is for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shelf.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/capture/interface.hpp"
#include "warmgraph/capture/scratch.hpp"

namespace warmgraph {

struct LastStream;

struct HalfContext {
    cachefmt::Half half = cachefmt::Half::forward;
    std::string pair;                  ///< its name: the folder of its entries
    std::string interface;             ///< of both halves, a guard
    std::vector<cachefmt::Fact> facts; ///< beside those that every function has
    std::shared_ptr<Shelf> shelf;
    std::shared_ptr<LastStream> last;
    std::shared_ptr<ScratchPool> saved; ///< the arena of both
    /// Of each call's arguments, before anything is done with them.
    std::function<Result<void>(const Frame&)> check{};
    /// Memory of the other half, for messages. May be null.
    std::function<std::vector<NamedMemory>()> others{};

    // Of the next call of backward. Forward needs none of it.
    std::optional<Digest> forward{}; ///< the forward half that it belongs to; none: that ran as it is, and so does this
    bool forward_waits = false;      ///< that half is in no entry yet: its miss is this one's too

    [[nodiscard]] bool is_forward() const noexcept { return half == cachefmt::Half::forward; }
    [[nodiscard]] bool runs_as_it_is() const noexcept { return !is_forward() && !forward; }
    [[nodiscard]] bool counts_miss() const noexcept { return is_forward() || !forward_waits; }
    // A pair is recorded when its second half is, and hit when its first one is.
    [[nodiscard]] bool counts_recording() const noexcept { return !is_forward(); }
    [[nodiscard]] bool counts_hit() const noexcept { return is_forward(); }
};

/// Beside the facts of both halves, which are the same: the forward half that a backward half is for. Canonical.
void add_facts(const HalfContext& half, std::vector<cachefmt::Fact>& facts);
/// Of a recorded backward half: the guards digest of its forward half.
[[nodiscard]] std::optional<Digest> forward_of(const std::vector<cachefmt::Fact>& facts);

} // namespace warmgraph
