// Work that remains after a call's answer: a recording, or a comparison of a stored entry with the answer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/backends/memory_tally.hpp"
#include "warmgraph/base/file_system.hpp"
#include "warmgraph/base/phases.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/call/loaded_variant.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph {

/// The state of one first call.
struct FirstCall {
    cachefmt::Guards now;               ///< the call's guards, with the distances of overlapping tensors
    Digest digest;                      ///< digest of the guards without these distances
    std::string reason{};               ///< why the call is not replayed
    bool tried = false;                 ///< whether there is an entry that cannot be used
    std::optional<ErrorCode> failure{}; ///< why the entry cannot be used, if nothing will be recorded instead
    std::optional<store::Miss> miss{};  ///< the miss, until its end is known
    std::chrono::steady_clock::time_point started{};
    Phases phases{};
    std::uint64_t recording_bytes = 0; ///< as in Report
};

[[nodiscard]] inline FirstCall new_first_call()
{
    FirstCall first_call;
    first_call.started = system_clock().steady();
    return first_call;
}

struct RecordJob {
    FirstCall first_call;
    Frame frame;
    std::vector<std::string> environment{}; ///< values, at the call, of the environment variables that the Spec names
    std::shared_ptr<RecordingSession> session;
    /// Counts the recording's device memory. It pauses while the answer runs, and until the job is completed.
    std::unique_ptr<backends::MemoryTally::Watch> memory{};
    std::vector<std::shared_ptr<backends::Module>> launched{}; ///< program modules that the call launched
    std::unique_ptr<FileLock> lock{};                          ///< lock of the entry that is recorded
    std::optional<LoadedVariant> verified{};                   ///< the entry that is compared with the answer
    bool records = true;                                       ///< whether a missing or wrong entry is recorded
    std::optional<Error> refusal{};                            ///< why the recording cannot go on
    /// Keeps device code: the result of backends::DeviceRecording::hold_recording.
    std::shared_ptr<void> keeps_code{};
};

} // namespace warmgraph
