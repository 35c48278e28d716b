// Recording: warm-up runs (of captures where there are semaphores) -> captures -> classify -> serialise in memory -> restore from those bytes -> compare.
// Nothing is published here, and the caller's memory is only read.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "warmgraph/base/phases.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

struct Recording {
    cachefmt::Entry entry; ///< as decoded from its own bytes
    std::vector<std::pair<Digest, Bytes>> images;
    std::unique_ptr<replay::Executable>
        executable; ///< the one that was verified; the same over registered modules where it uses such
};

/// `header` carries key and guards. Errors: not_recordable and verification_failed (the function runs as it is),
/// compile_failed, driver_failed, out_of_memory. What the callable throws comes back as not_recordable. partly_launched:
/// verification damaged the caller's memory, which must not go on as if nothing had happened.
[[nodiscard]] Result<Recording> record(const Subject& subject, const Frame& frame, cachefmt::EntryHeader header,
                                       replay::ModuleCache& modules, Phases& phases);

} // namespace warmgraph
