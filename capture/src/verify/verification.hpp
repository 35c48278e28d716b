// What recording and adoption have in common when they hold a restored graph to the original's own results.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "verify/spread.hpp"
#include "verify/trial_memory.hpp"
#include "warmgraph/capture/bindings.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

// Scratch contents differ from run to run, so that a function that reads what it did not write betrays itself.
inline constexpr std::array k_poison{std::byte{0xFF}, std::byte{0x5A}, std::byte{0x00}};
inline constexpr std::size_t k_runs = k_poison.size();
inline constexpr std::size_t k_runs_when_they_differ = 8;
inline constexpr std::size_t k_placements = 2;

[[nodiscard]] std::vector<DType> region_types(const Frame& frame);

/// `run` is called with 0, 1 ...: three times, and more often when the results differ.
[[nodiscard]] Result<void> learn_spread(Spread& spread, const std::function<Result<Outcomes>(std::size_t)>& run);

/// "bitwise (3 runs)", "bitwise (3 runs), without its semaphores"
[[nodiscard]] std::string verification_text(const Spread& spread, const cachefmt::Graph& graph);
/// `graph` with empty nodes in the place of semaphores. not_recordable: it allocates memory as well, which is there only
/// where the driver's own graph runs.
[[nodiscard]] Result<backends::RawGraph> runnable_on_copies(backends::RawGraph graph);

/// A run of the function itself on trial memory with poisoned scratch, and what it left there. Of a function with semaphores it
/// is the callable's capture that runs, without them.
class TrialRun {
public:
    TrialRun(const Subject& subject, const Frame& frame, TrialMemory& trial, ScratchPool& scratch,
             const std::shared_ptr<backends::Stream>& stream, RunContext& context)
        : m_subject(subject), m_frame(frame), m_trial(trial), m_scratch(scratch), m_stream(stream), m_context(context)
    {
    }
    /// `index` chooses placement and poison.
    [[nodiscard]] Result<Outcomes> run(std::size_t index, const std::vector<std::uint64_t>& scalars);

private:
    [[nodiscard]] Result<void> run_capture(const RunInputs& inputs);

    const Subject& m_subject;
    const Frame& m_frame;
    TrialMemory& m_trial;
    ScratchPool& m_scratch;
    const std::shared_ptr<backends::Stream>& m_stream;
    RunContext& m_context;
    std::unique_ptr<backends::GraphExec> m_exec; ///< of the last capture, until its work is done
};

/// One launch of the restored graph, without semaphores, on trial memory with poisoned scratch, and what it left there.
class TrialReplay {
public:
    TrialReplay(backends::Device& device, backends::Stream& stream, TrialMemory& trial, const DeclaredHandles& handles)
        : m_device(device), m_stream(stream), m_trial(trial), m_handles(handles)
    {
    }
    [[nodiscard]] Result<Outcomes> run(replay::Executable& executable, std::size_t placement,
                                       const std::vector<std::uint64_t>& scalars);
    /// At every placement; each outcome must be within the spread.
    [[nodiscard]] Result<void> accept_all(replay::Executable& executable, const std::vector<std::uint64_t>& scalars,
                                          const Spread& spread);
    /// After all runs, whatever came of them. partly_launched: a replay wrote into memory that is used in place, and
    /// nothing can put back what was there.
    [[nodiscard]] Result<void> check_caller_memory() const;

private:
    backends::Device& m_device;
    backends::Stream& m_stream;
    TrialMemory& m_trial;
    const DeclaredHandles& m_handles;
};

} // namespace warmgraph
