// Whether words that look like addresses of memory that nobody declared are followed as such.
//
// Stacks are full of old pointers. A parameter that is written on one in part holds the rest of them: { int 4, the
// upper half of an address }. Where somebody's live memory begins at a multiple of 4 GiB, as a driver's first
// allocation often does, such a word lies in it, and stays the same in two captures. FlatWords chooses those that are
// hardly anything else. Here its upper half is changed, so that the word points into a decoy: as large as the memory
// that it seemed to point to, full of zeros, and at addresses with the same lower halves. A run that gives the same
// results, and leaves the decoy as it is, neither read nor wrote there.
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

    /// Lays a decoy for each suspect and changes its upper half in the graph. not_recordable: what lies at the address
    /// is zeros as well, so that a run would tell nothing.
    [[nodiscard]] Result<void> lay(std::span<const SuspectHalf> suspects, backends::RawGraph& graph);
    [[nodiscard]] Result<bool> are_untouched() const;

private:
    struct Range {
        std::uint64_t from = 0, to = 0;
        MemoryRef owned, decoy;
        std::uint64_t shift = 0; ///< of upper halves
    };
    [[nodiscard]] Result<void> add(const SuspectHalf& suspect, std::uint32_t upper);
    [[nodiscard]] Result<void> reserve(Range& range) const;

    backends::Device& m_device;
    std::map<std::uint32_t, Range> m_ranges; ///< by the upper half of suspects
};

/// The suspect's bytes.
[[nodiscard]] std::uint32_t upper_half(const Bytes& param, const SuspectHalf& suspect);
void set_upper_half(Bytes& param, const SuspectHalf& suspect, std::uint32_t value);

} // namespace warmgraph
