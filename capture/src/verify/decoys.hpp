// Tests whether a graph uses words that look like addresses, and that no region explains, as addresses.
//
// Stacks are full of old pointers. A parameter that is written only in part keeps them, or parts of them: { int 4, the
// upper half of an address }. If live memory begins at a multiple of 4 GiB, as a driver's first allocation often does,
// such a word points into it and is equal in two captures. FlatWords chooses as suspects the words that are very
// probably such remains (differential_capture.md). This class changes their upper halves, so that they point into decoys: memory of the same size, full of
// zeros, at addresses with the same lower halves. If a run gives the same results and leaves the decoys unchanged, it
// did not use the words as addresses.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "classify/classify.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph {

class Decoys {
public:
    explicit Decoys(backends::Device& device) noexcept : m_device(device) {}
    Decoys(const Decoys&) = delete;
    Decoys& operator=(const Decoys&) = delete;
    ~Decoys();

    /// Allocates a decoy for each suspect and changes the suspect's upper half in the graph. not_recordable: the memory
    /// at the address is all zeros too, so that a run would show nothing.
    [[nodiscard]] Result<void> lay(std::span<const SuspectHalf> suspects, backends::RawGraph& graph);
    [[nodiscard]] Result<bool> are_untouched() const;

private:
    struct Range {
        std::uint64_t from = 0, to = 0;
        MemoryRef owned, decoy;
        std::uint64_t shift = 0; ///< number that is added to the upper halves
    };
    [[nodiscard]] Result<void> add(const SuspectHalf& suspect, std::uint32_t upper);
    [[nodiscard]] Result<void> reserve(Range& range) const;

    backends::Device& m_device;
    std::map<std::uint32_t, Range> m_ranges; ///< keyed by the suspects' upper halves
};

/// Returns the suspect's four bytes.
[[nodiscard]] std::uint32_t upper_half(const Bytes& param, const SuspectHalf& suspect);
void set_upper_half(Bytes& param, const SuspectHalf& suspect, std::uint32_t value);

} // namespace warmgraph
