// What must be known before anything runs on copies: a trial that meets one of these would reach what is the caller's,
// or others'.
#pragma once

#include <span>

#include "verify/trial_memory.hpp"
#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/capture/run.hpp"

namespace warmgraph {

/// Where words that are addresses near these regions lie.
[[nodiscard]] std::vector<backends::AddressWindow> windows_around(std::span<const MemoryRef> regions);

/// not_recordable names a region that is managed memory. A capture at a shadow of it would let the callable read what
/// is no memory. `regions`: as Interface::regions.
[[nodiscard]] Result<void> check_no_managed(const Subject& subject, std::span<const MemoryRef> regions);

/// not_recordable names a region, not declared as floating point, that holds an address in a region of the call or in a
/// live allocation: work that follows such an address would reach the caller's memory from a trial, and from a replay.
[[nodiscard]] Result<void> check_tables(const Subject& subject, const TrialMemory& memory);

/// not_recordable where it launches a collective: that waits for other ranks, which do not take part in a trial.
[[nodiscard]] Result<void> check_no_collectives(const backends::RawGraph& graph);

} // namespace warmgraph
