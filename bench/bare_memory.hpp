// An entry's memory in a process that restores it by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "bare_driver.hpp"
#include "stored_entry.hpp"

namespace warmgraph::bench {

/// The entry's memory in this process, all zero but for the constants.
class BareMemory {
public:
    BareMemory(const BareContext& context, const StoredEntry& stored);

    [[nodiscard]] const std::vector<std::uint64_t>& regions() const noexcept { return m_regions; } ///< addresses
    /// SHA-256 over what compared_regions() names.
    [[nodiscard]] Digest results(const cachefmt::Graph& graph) const;

private:
    const BareContext& m_context;
    std::vector<std::uint64_t> m_regions;
};

/// Outputs, and states that are small enough to be read back: what both ways of restoring are to agree in.
[[nodiscard]] std::vector<std::size_t> compared_regions(const cachefmt::Graph& graph);

} // namespace warmgraph::bench
