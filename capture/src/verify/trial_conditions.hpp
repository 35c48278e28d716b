// Checks before anything runs on copies: in these cases a trial would reach memory of the caller, or other ranks.
#pragma once

#include <span>

#include "verify/trial_memory.hpp"
#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/capture/run.hpp"

namespace warmgraph {

/// Returns the windows that contain addresses near these regions.
[[nodiscard]] std::vector<backends::AddressWindow> windows_around(std::span<const MemoryRef> regions);

/// Fails with not_recordable, which names the region, if a region is in managed memory. The callable could read such a
/// region on the host, and its shadow has no memory. `regions`: in the order of Interface::regions.
[[nodiscard]] Result<void> check_no_managed(const CaptureTarget& target, std::span<const MemoryRef> regions);

/// Fails with not_recordable, which names the region, if a region that is not declared as floating point holds an
/// address in a region of the call or in a live allocation. Trials and replays that follow the address would reach the
/// caller's memory.
[[nodiscard]] Result<void> check_tables(const CaptureTarget& target, const TrialMemory& memory);

/// Fails with not_recordable if the capture launches a collective, which would wait for other ranks that do not take
/// part in a trial.
[[nodiscard]] Result<void> check_no_collectives(const backends::RawGraph& graph);

} // namespace warmgraph
