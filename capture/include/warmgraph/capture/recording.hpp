// Recording one call, around the answer that the caller gives by running the function as it is:
//
//   prepare()       copies of what may be written; nothing of the caller's is changed
//   begin_answer()  what the thread enqueues from now on is watched
//                   ... the function runs, in its stream, on its memory: that is the call's result
//   end_answer()    its results are copied, in its stream
//   record()        look: captures, which run nothing, and their classification;
//                   try: the capture and the restored graph run on copies, and must leave what the answer left
//
// Nothing is published here. The callable is called for captures only, never to run.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/phases.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/capture/proof.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

struct Recording {
    cachefmt::Entry entry;                        ///< as decoded from its own bytes
    std::vector<std::pair<Digest, Bytes>> images; ///< and the contents of constants
    std::unique_ptr<replay::Executable>
        executable;    ///< the one that was verified; the same over registered modules where it uses such
    double run_ms = 0; ///< the fastest run of what the call captured, everything being there; 0: not known
};

/// Runs an executable on copies and holds it to what a recording was held to; it is gone afterwards. Errors as
/// RecordingSession::verify's.
using HoldToAnswer = std::function<Result<void>(std::unique_ptr<replay::Executable> executable)>;

struct RecordOptions {
    /// For probing all scalars together; a tenth of the compile where that is more.
    std::chrono::milliseconds probing{200};
    /// Module variables that the caller vouches for, by name; "*": all. Others may not differ from their image.
    std::vector<std::string> frozen_variables{};
    std::uint64_t most_constant_bytes = 64ULL << 20U; ///< of all constants together
    /// Allocations that the work only reads and nobody declared are kept as constants, where an entry can carry them.
    bool keeps_undeclared = false;
    /// Of words of kernels' parameters that nobody ever wrote. Tried: they are zeros.
    UnusedWords unused = UnusedWords::tried;
};

/// Used by one thread at a time; the answer may be waited for by another one. Outlived by what `subject` names.
class RecordingSession {
public:
    RecordingSession(Subject subject, Frame frame, replay::ModuleCache& modules, RecordOptions options);
    RecordingSession(const RecordingSession&) = delete;
    RecordingSession& operator=(const RecordingSession&) = delete;
    ~RecordingSession();

    /// The caller's memory must be idle. Errors: not_recordable, out_of_memory, driver_failed.
    [[nodiscard]] Result<void> prepare();
    /// `stream`: of the call, which the answer is enqueued in.
    [[nodiscard]] Result<void> begin_answer(const std::shared_ptr<backends::Stream>& stream);
    /// Instead of an answer that is looked at: frees everything now, before work is enqueued that freeing would wait
    /// for.
    void give_up() noexcept;
    /// After the callable returned. `context`: of its run. An error (the results could not be copied) ends the
    /// recording.
    [[nodiscard]] Result<void> end_answer(const RunContext& context);
    /// Whether the answer may wait for something that this very thread does later: it must not be waited for.
    [[nodiscard]] bool waits_outside() const noexcept;
    /// Is all of the answer's work done?
    [[nodiscard]] Result<bool> is_answered();
    /// Blocks until it is.
    [[nodiscard]] Result<void> wait_for_answer();

    /// `header` carries key and guards; where the function asks how overlapping tensors lie, the guards come back with
    /// their distances, and the key with it. Errors: not_recordable and verification_failed (the function goes on as it
    /// is), driver_failed, out_of_memory. partly_launched: a trial damaged a read-only state of the caller's.
    [[nodiscard]] Result<Recording> record(cachefmt::EntryHeader header, Phases& phases);

    /// Holds an executable of a stored entry to the answer, on copies. verification_failed: they differ. Any other
    /// code: it could not be found out. The executable is left bound to copies: its next launch rebinds.
    [[nodiscard]] Result<void> verify(replay::Executable& executable, Phases& phases);
    /// The answer enqueued work past the recorder's stream.
    [[nodiscard]] bool strayed() const noexcept;
    /// A trial never ended: what it ran must be leaked.
    [[nodiscard]] bool is_abandoned() const noexcept;

    struct Impl;

private:
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
