// Checks before anything runs on copies: in these cases a trial would reach memory of the caller, or other ranks.
#pragma once

#include <span>

#include "verify/trial_memory.hpp"
#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/capture/run.hpp"

namespace warmgraph {

/// Returns the windows that contain addresses near these regions.
[[nodiscard]] std::vector<backends::AddressWindow> windows_around(std::span<const MemoryRef> regions);

/// not_recordable names a region in managed memory. At a shadow of it the callable could read addresses without memory.
/// `regions`: in the order of Interface::regions.
[[nodiscard]] Result<void> check_no_managed(const Subject& subject, std::span<const MemoryRef> regions);

/// not_recordable names a region, not declared as floating point, that holds an address in a region of the call or in a
/// live allocation: trials and replays that follow it would reach the caller's memory.
[[nodiscard]] Result<void> check_tables(const Subject& subject, const TrialMemory& memory);

/// not_recordable: it launches a collective, which would wait for other ranks that do not take part in a trial.
[[nodiscard]] Result<void> check_no_collectives(const backends::RawGraph& graph);

} // namespace warmgraph
