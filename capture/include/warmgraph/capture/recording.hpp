// Records one call. The caller runs the function once as usual; this run is the answer, whose results are right:
//
//   prepare()       copies the memory that the function may write; does not change the caller's memory
//   begin_answer()  starts watching the work that this thread enqueues
//                   ... the function runs in its stream, on its memory: this is the call's result
//   end_answer()    copies the results, in the same stream
//   record()        look: captures the function without running its work, and classifies the captures;
//                   try: runs the capture and the restored graph on copies, and compares the results with the answer
//
// Recording publishes nothing. After the answer the callable is called only to capture it.
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
    cachefmt::Entry entry;                        ///< the entry as decoded from the bytes that will be stored
    std::vector<std::pair<Digest, Bytes>> images; ///< device code images and contents of constants, by digest
    /// The verified executable. If the graph uses registered modules: the same graph, restored again with those
    /// modules.
    std::unique_ptr<replay::Executable> executable;
    std::uint64_t device_bytes = 0; ///< the most device memory that the recording held; the caller sets it
    double run_ms = 0;              ///< time of the fastest run of the captured graph on a warm device; 0: not known
};

/// Runs an executable on copies and compares the results in the same way as verify(), with the same errors. Destroys
/// the executable.
using HoldToAnswer = std::function<Result<void>(std::unique_ptr<replay::Executable> executable)>;

struct RecordOptions {
    /// The time for probing all scalars together; a tenth of the compile time is used instead if it is longer.
    std::chrono::milliseconds probing{200};
    /// Module variables by name that the caller promises not to change; "*" means all. A variable that is not listed
    /// must equal its initial value in the image.
    std::vector<std::string> frozen_variables{};
    std::uint64_t most_constant_bytes = 64ULL << 20U; ///< limit for all constants together, in bytes
    /// Stores as constants the allocations that the work only reads and that are not declared, if an entry can carry
    /// them.
    bool keeps_undeclared = false;
    /// How to treat words of kernel parameters that were never written. `tried`: they become zeros.
    UnusedWords unused = UnusedWords::tried;
};

/// One thread at a time may use a session; another thread may wait for the answer. The objects that `target` refers to
/// must outlive it.
class RecordingSession {
public:
    RecordingSession(CaptureTarget target, Frame frame, replay::ModuleCache& modules, RecordOptions options);
    RecordingSession(const RecordingSession&) = delete;
    RecordingSession& operator=(const RecordingSession&) = delete;
    ~RecordingSession();

    /// Copies the memory that the function may write. The caller's memory must be idle. Errors: not_recordable,
    /// out_of_memory, driver_failed.
    [[nodiscard]] Result<void> prepare();
    /// Begins to watch the answer. `stream`: the call's stream, in which the answer is enqueued.
    [[nodiscard]] Result<void> begin_answer(const std::shared_ptr<backends::Stream>& stream);
    /// Gives up the recording before its answer. Frees all memory now, because freeing it later would wait for enqueued
    /// work.
    void give_up() noexcept;
    /// Call this when the callable returned. `context`: the context of that run. An error (the results could not be
    /// copied) ends the recording.
    [[nodiscard]] Result<void> end_answer(const RunContext& context);
    /// Whether the answer may wait for something that this thread does later. Such an answer must not be waited for.
    [[nodiscard]] bool waits_outside() const noexcept;
    /// Whether all work of the answer is done.
    [[nodiscard]] Result<bool> is_answered();
    /// Blocks until all work of the answer is done.
    [[nodiscard]] Result<void> wait_for_answer();

    /// `header` carries key and guards. If the function depends on how tensors overlap, the guards get the tensors'
    /// distances and the key changes with them. Errors: not_recordable, verification_failed (the function keeps running
    /// without a graph), driver_failed, out_of_memory. partly_launched: a trial damaged a read-only state of the
    /// caller.
    [[nodiscard]] Result<Recording> record(cachefmt::EntryHeader header, Phases& phases);

    /// Compares an executable of a stored entry with the answer, on copies. verification_failed: the results differ.
    /// Any other code: the comparison failed. The executable stays bound to the copies; its next launch rebinds it.
    [[nodiscard]] Result<void> verify(replay::Executable& executable, Phases& phases);
    /// Whether the answer enqueued work outside the recorder's stream.
    [[nodiscard]] bool strayed() const noexcept;
    /// Whether a trial never ended. The memory and the graph that the trial uses must then be leaked.
    [[nodiscard]] bool is_abandoned() const noexcept;

    struct Impl;

private:
    std::shared_ptr<Impl> m_impl;
};

} // namespace warmgraph
