// What is left to do when a call has its answer: a recording, or a comparison of a stored entry with the answer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/base/file_system.hpp"
#include "warmgraph/base/phases.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/call/loaded_variant.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph {

/// One first call on its way.
struct Journey {
    cachefmt::Guards now;               ///< with the distances of tensors that overlap
    Digest digest;                      ///< of the guards without those
    std::string reason{};               ///< why it is not replayed
    bool tried = false;                 ///< an entry is there and cannot be used
    std::optional<ErrorCode> failure{}; ///< why it cannot, where nobody will record it anew
    std::optional<store::Miss> miss{};  ///< what is known of it, until its end is noted
    std::chrono::steady_clock::time_point started{};
    Phases phases{};
};

[[nodiscard]] inline Journey new_journey()
{
    Journey journey;
    journey.started = system_clock().steady();
    return journey;
}

struct Job {
    Journey journey;
    Frame frame;
    std::vector<std::string> environment{}; ///< the values of the variables that the Spec names, at the call
    std::shared_ptr<RecordingSession> session;
    std::vector<std::shared_ptr<backends::Module>> launched{}; ///< by the call, of programs
    std::unique_ptr<FileLock> lock{};                          ///< of the entry that is recorded
    std::optional<LoadedVariant> verified{};                   ///< the entry that is held to the answer
    bool records = true;                ///< what is not there, or does not do what the function does
    std::optional<Error> refusal{};     ///< the recording cannot go on, and why
    std::shared_ptr<void> keeps_code{}; ///< backends::Recording::hold_recording
};

} // namespace warmgraph
