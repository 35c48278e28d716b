// Trials: runs on copies. An instantiated capture tells what the function does, a restored graph is held to it.
//
// A trial starts from the snapshot, with outputs that hold something else. What a trial must not meet is left out on
// both sides (backends::without_outside). A trial that takes too long is given up: its work still uses memory and
// streams, so all of it is leaked.
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

/// What scratch holds before a run: zeros, as where a graph is restored, or what is there. A function whose results
/// differ reads what it did not write. Other contents could be taken for an index or an address, and end the process's
/// context.
enum class ScratchHolds : std::uint8_t { zeros, what_was_left };
inline constexpr std::size_t k_placements = 2;

[[nodiscard]] std::vector<DType> region_types(const Frame& frame);
/// By region: those that the function may write.
[[nodiscard]] std::vector<std::uint8_t> compared_regions(const TrialMemory& memory, std::size_t count);

/// Calls `run`, which gives what Spread::add gave: `least` times, and k_most_own_runs times when the results differ.
[[nodiscard]] Result<void> learn_spread(Spread& spread, std::size_t least,
                                        const std::function<Result<std::size_t>()>& run);

/// "bitwise (3 runs)", "bitwise (3 runs), without its semaphores"
[[nodiscard]] std::string verification_text(const Spread& spread, const cachefmt::Graph& graph);

/// What may run on copies: the capture without its work with the outside. nullopt: the capture as it is.
/// not_recordable: it allocates memory as well, which is there only where the driver's own graph runs.
[[nodiscard]] Result<std::optional<backends::RawGraph>> reduced_for_trials(const backends::RawGraph& capture);
/// The driver's own instance of the capture, or one of what reduced_for_trials() gives.
[[nodiscard]] Result<std::unique_ptr<backends::GraphExec>> instantiate_for_trials(backends::Device& device,
                                                                                  const backends::RawGraph& capture);

class Trials {
public:
    using Outputs = TrialMemory::Outputs;

    /// `limit`: of one trial. `check_each`: what else must hold after each trial; may be null.
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

    /// One run of a capture that was made at placement 0, with this scratch.
    [[nodiscard]] Result<void> run(const std::shared_ptr<backends::GraphExec>& capture, ScratchPool& scratch,
                                   ScratchHolds holds, Outputs outputs);
    [[nodiscard]] Result<void> replay(replay::Executable& executable, std::size_t placement,
                                      const std::vector<std::uint64_t>& scalars, Outputs outputs);
    /// At every placement; each outcome must be within the spread, whose runs started with the same outputs.
    [[nodiscard]] Result<void> accept_all(replay::Executable& executable, const std::vector<std::uint64_t>& scalars,
                                          const Spread& spread, Outputs outputs);
    /// At one of them. What is wrong is so each time; what leaves the spread of few own runs by chance, and by a
    /// little, is tried again.
    [[nodiscard]] Result<void> accept_at(std::size_t placement, replay::Executable& executable,
                                         const std::vector<std::uint64_t>& scalars, const Spread& spread,
                                         Outputs outputs);
    /// After all trials, whatever came of them. partly_launched: a read-only state of the caller's has other contents,
    /// and nothing can put back what was there.
    [[nodiscard]] Result<void> check_caller_memory() const;
    /// What the work took the device in the fastest run of a capture; 0: there was none.
    [[nodiscard]] std::chrono::nanoseconds fastest_run() const noexcept { return m_fastest_run; }
    /// A trial was given up. Its executable must be leaked as well.
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
