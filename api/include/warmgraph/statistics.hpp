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
    /// Uses of stored artifacts. Entries: first calls that were replayed. Compiled: programs that were loaded. Tuned:
    /// kernels whose stored configuration was used. Profiles: functions whose stored profile was read.
    std::uint64_t hits = 0;
    std::uint64_t misses = 0; ///< lookups that found no artifact that could be used
    std::uint64_t made = 0;   ///< recorded entries, compiled programs, tuned kernels; profiles: 0
    /// Entries: calls that could not be recorded, or whose caller refused the recording (Cache::note_refusal).
    /// Compiled: programs that the policy no_compile forbids to compile. Others: 0.
    std::uint64_t refused = 0;
    double making_ms = 0; ///< time of recording (after the calls' own results), of compiling, of tuning; profiles: 0
    double load_ms = 0;   ///< time of loading and checking the artifacts of hits; profiles: 0
    /// Time that the hits saved. Entries: the time of the first calls without the cache. Compiled, tuned: the time of
    /// the compilations and searches that the hits replaced. load_ms, and the time that another kind counts
    /// (docs/kinds.md), are subtracted. Profiles: 0.
    double saved_ms = 0;
    std::vector<std::string> miss_reasons{}; ///< reasons of misses ("decode: no entry"), the first 64; profiles: none
};

/// Counters of a remote (CacheOptions::remote, CacheOptions::tiers) in this process. Times are in milliseconds.
struct RemoteStatistics {
    std::string label;               ///< its URL without secrets and attributes, or TierOptions::label
    std::uint64_t hits = 0;          ///< objects that it gave, and lists of headers of a function
    std::uint64_t misses = 0;        ///< those that it did not have
    std::uint64_t puts = 0;          ///< objects that were sent
    std::uint64_t bytes_read = 0;    ///< fetched
    std::uint64_t bytes_left = 0;    ///< not fetched, because an object's header said that it does not fit
    std::uint64_t bytes_written = 0; ///< sent
    double read_ms = 0, write_ms = 0;
    std::uint64_t skipped = 0; ///< look-ups that went on without it while it did not answer
    /// Failures by the word of their code: "io_failed", "permission_denied", "corrupt", "untrusted"
    std::map<std::string, std::uint64_t> errors{};
};

struct Statistics {
    std::map<ArtifactKind, KindStatistics> kinds{}; ///< entries, compiled, tuned and profiles; torch is not counted
    std::uint64_t cache_faults = 0;                 ///< failures of the disk and damaged files: they cost time only
    std::uint64_t untrusted = 0;                    ///< entries that were refused for their signature, each once
    std::uint64_t images_loaded =
        0; ///< loaded images of this cache's entries, also those that another cache of the process loaded
    std::uint64_t captures_written = 0; ///< files that Cache::write_capture wrote
    std::uint64_t captures_paired = 0;  ///< captures of other processes that proved an entry
    std::uint64_t captures_ignored = 0; ///< captures that are damaged or of another version, or that proved nothing
    std::vector<RemoteStatistics> remotes{}; ///< in the order of CacheOptions::remote, then of CacheOptions::tiers

    /// The counters of one kind; all 0 for a kind that is not counted.
    [[nodiscard]] KindStatistics of(ArtifactKind kind) const
    {
        const auto found = kinds.find(kind);
        return found != kinds.end() ? found->second : KindStatistics{};
    }
};

} // namespace warmgraph
