// The counters of a cache in this process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/base/artifact_kind.hpp"

namespace warmgraph {

/// Counters of one kind. Times are in milliseconds.
struct KindStatistics {
    /// A stored artifact was used. Entries: first calls that were replayed. Compiled: programs that were loaded. Tuned:
    /// kernels whose stored configuration was used. Profiles: functions whose stored profile was read.
    std::uint64_t hits = 0;
    std::uint64_t misses = 0; ///< no stored artifact could be used
    std::uint64_t made = 0;   ///< entries recorded, programs compiled, kernels tuned; profiles: 0
    /// Entries: calls that could not be recorded, or whose caller refused it (Cache::note_refusal). Compiled: programs
    /// that the policy no_compile forbids to compile. Others: 0.
    std::uint64_t refused = 0;
    double making_ms = 0; ///< spent on recording after the calls' own results, on compiling, on tuning; profiles: 0
    double load_ms = 0;   ///< spent on using hits; profiles: 0
    /// Entries: time of the first calls without the cache. Compiled, tuned: time of the compilations and searches that hits
    /// stand for. Less load_ms, and less what another kind counts (docs/kinds.md). Profiles: 0.
    double saved_ms = 0;
    std::vector<std::string> miss_reasons{}; ///< "decode: no entry", the first 64; profiles: none
};

struct Statistics {
    std::map<ArtifactKind, KindStatistics> kinds{}; ///< entries, compiled, tuned and profiles; torch is not counted
    std::uint64_t cache_faults = 0;                 ///< failures of the disk and damaged files: they cost time only
    std::uint64_t untrusted = 0;                    ///< entries that were refused for their signature, each once
    std::uint64_t images_loaded =
        0; ///< images of its entries that are loaded, whichever cache of the process loaded them
    std::uint64_t captures_written = 0; ///< files that Cache::write_capture wrote
    std::uint64_t captures_paired = 0;  ///< captures of other processes that proved an entry
    std::uint64_t captures_ignored = 0; ///< captures that are damaged, of another version, or proved nothing

    /// The counters of one kind; all 0 for a kind that is not counted.
    [[nodiscard]] KindStatistics of(ArtifactKind kind) const
    {
        const auto found = kinds.find(kind);
        return found != kinds.end() ? found->second : KindStatistics{};
    }
};

} // namespace warmgraph
