// Trials: runs on copies. Runs of an instantiated capture show the function's results; a restored graph must match
// them.
//
// A trial starts from the snapshot, with other contents in its outputs. Both graphs run without their work with the
// outside, such as semaphores (backends::without_outside). A trial that takes too long is given up. Its work still uses
// memory and streams, so they are leaked.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verify/spread.hpp"
#include "verify/trial_memory.hpp"
#include "warmgraph/capture/bindings.hpp"
#include "warmgraph/capture/scratch.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// The scratch's contents before a run: zeros, as for a restored graph, or the last run's remains. If the results
/// differ, the function reads scratch that it did not write. Other contents might be used as an index or an address and
/// destroy the process's context.
enum class ScratchHolds : std::uint8_t { zeros, what_was_left };
inline constexpr std::size_t k_placements = 2;

[[nodiscard]] std::vector<DType> region_types(const Frame& frame);
/// Returns for each region whether the function may write it.
[[nodiscard]] std::vector<std::uint8_t> compared_regions(const TrialMemory& memory, std::size_t count);

/// Calls `run`, which returns the result of Spread::add: calls it `least` times, or k_most_own_runs times if results
/// differ.
[[nodiscard]] Result<void> learn_spread(Spread& spread, std::size_t least,
                                        const std::function<Result<std::size_t>()>& run);

/// Returns a text such as "bitwise (3 runs)" or "bitwise (3 runs), without its semaphores".
[[nodiscard]] std::string verification_text(const Spread& spread, const cachefmt::Graph& graph);

/// Returns the capture without its work with the outside, which may run on copies. nullopt: the capture has no such
/// work. not_recordable: the capture also allocates memory, which only the driver's own graph has.
[[nodiscard]] Result<std::optional<backends::RawGraph>> reduced_for_trials(const backends::RawGraph& capture);
/// Returns the driver's own instance of the capture, or an instance of reduced_for_trials().
[[nodiscard]] Result<std::unique_ptr<backends::GraphExec>> instantiate_for_trials(backends::Device& device,
                                                                                  const backends::RawGraph& capture);

class Trials {
public:
    using Outputs = TrialMemory::Outputs;

    /// `limit`: time limit of one trial. `check_each`: another check after each trial; may be null.
    Trials(std::shared_ptr<backends::Device> device, std::shared_ptr<backends::Stream> stream,
           std::shared_ptr<TrialMemory> memory, const DeclaredHandles& handles, std::chrono::nanoseconds limit,
           std::function<Result<void>()> check_each)
        : m_device(std::move(device)),
          m_stream(std::move(stream)),
          m_memory(std::move(memory)),
          m_handles(handles),
          m_limit(limit),
          m_check_each(std::move(check_each))
    {
    }

    /// Runs a capture that was made at placement 0, with this scratch.
    [[nodiscard]] Result<void> run(const std::shared_ptr<backends::GraphExec>& capture, ScratchPool& scratch,
                                   ScratchHolds holds, Outputs outputs);
    [[nodiscard]] Result<void> replay(replay::Executable& executable, std::size_t placement,
                                      const std::vector<std::uint64_t>& scalars, Outputs outputs);
    /// Replays at each placement. Each outcome must be within the spread; the spread's runs must have started with the
    /// same outputs.
    [[nodiscard]] Result<void> accept_all(replay::Executable& executable, const std::vector<std::uint64_t>& scalars,
                                          const Spread& spread, Outputs outputs);
    /// Replays at one placement. A wrong result is wrong each time; a result that is narrowly outside the spread of few
    /// own runs may be chance, so the replay is tried again.
    [[nodiscard]] Result<void> accept_at(std::size_t placement, replay::Executable& executable,
                                         const std::vector<std::uint64_t>& scalars, const Spread& spread,
                                         Outputs outputs);
    /// Call this once the trials are over, whether they passed or not. partly_launched: a read-only state of the caller
    /// changed and cannot be restored.
    [[nodiscard]] Result<void> check_caller_memory() const;
    /// Returns the device time of the fastest run of a capture; 0: no capture ran.
    [[nodiscard]] std::chrono::nanoseconds fastest_run() const noexcept { return m_fastest_run; }
    /// Whether a trial was given up. The executable of that trial must be leaked too.
    [[nodiscard]] bool is_abandoned() const noexcept { return m_is_abandoned; }

private:
    [[nodiscard]] Result<void> end_trial(Result<void> launched);
    [[nodiscard]] Result<bool> wait();

    std::shared_ptr<backends::Device> m_device;
    std::shared_ptr<backends::Stream> m_stream;
    std::shared_ptr<TrialMemory> m_memory;
    const DeclaredHandles& m_handles;
    std::chrono::nanoseconds m_limit;
    std::function<Result<void>()> m_check_each;
    bool m_is_abandoned = false;
    std::chrono::steady_clock::time_point m_waited; ///< when the last trial's work was done
    std::chrono::nanoseconds m_fastest_run{0};
};

} // namespace warmgraph
