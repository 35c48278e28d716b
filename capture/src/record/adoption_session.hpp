// One adoption of a captured graph: checks the arguments (adoption_arguments.cpp), reads and classifies the graph
// (adoption.cpp), runs the original (adoption_original.cpp), and compares the restored graph's results with it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "classify/classify.hpp"
#include "verify/constants.hpp"
#include "verify/restoration.hpp"
#include "verify/scratch_contents.hpp"
#include "verify/trials.hpp"
#include "warmgraph/capture/adoption.hpp"

namespace warmgraph {

/// Reads the graph back, together with the addresses of the call's tensors.
[[nodiscard]] Result<CapturedGraph> read_capture(const CaptureTarget& target, const Frame& frame,
                                                 const AdoptedCapture& capture);
/// Fails with invalid_argument if the capture does not fit the function's declaration. `which` names the capture in the
/// message: "first".
[[nodiscard]] Result<void> check_capture(const CaptureTarget& target, const Frame& frame, const AdoptedCapture& capture,
                                         std::string_view which);

class AdoptionSession {
public:
    AdoptionSession(const CaptureTarget& target, const Frame& frame, const AdoptedCapture& first,
                    const AdoptOptions& options, replay::ModuleCache& modules, Phases& phases)
        : m_target(target),
          m_device(*target.device),
          m_frame(frame),
          m_first(first),
          m_options(options),
          m_constants(target.device, named(target.interface.constants), options.most_constant_bytes),
          m_module_cache(modules),
          m_phases(phases)
    {
    }
    Result<Recording> adopt(cachefmt::EntryHeader header, const AdoptedCapture* second);

private:
    [[nodiscard]] Result<void> check_arguments(const AdoptedCapture* second) const;
    [[nodiscard]] Result<void> check_scalars(const AdoptedCapture* second) const;
    [[nodiscard]] Result<void> check_followed(const cachefmt::Graph& graph) const;
    [[nodiscard]] Result<CapturedGraph> second_of(const AdoptedCapture& second, Captures& captures) const;
    [[nodiscard]] Result<Classification> classified(const AdoptedCapture* second);
    [[nodiscard]] Result<void> judge_variables(Classification& classified, RestorationRequest& request);
    [[nodiscard]] Result<void> original_run(backends::GraphExec& exec);
    [[nodiscard]] Result<void> run_original(RestorationRequest& request);
    [[nodiscard]] Result<void> run_original_within(ScratchContents& scratch, RestorationRequest& request);
    [[nodiscard]] Result<void> hold_to_answer();
    [[nodiscard]] Result<void> judge_scratch(ScratchContents& scratch, backends::GraphExec& exec,
                                             RestorationRequest& request);
    [[nodiscard]] Result<void> judge_suspects(ScratchContents& scratch, RestorationRequest& request);
    [[nodiscard]] Result<void> keep_contents(const ScratchContents& scratch,
                                             std::span<const ScratchContents::Range> ranges,
                                             RestorationRequest& request);
    [[nodiscard]] Result<RestorationRequest> request(cachefmt::EntryHeader header, Classification classified);
    [[nodiscard]] std::function<std::optional<MemoryRef>(std::uint64_t)> allocation_at() const;
    [[nodiscard]] Trials trials() const;

    const CaptureTarget& m_target;
    backends::Device& m_device;
    const Frame& m_frame;
    const AdoptedCapture& m_first;
    const AdoptOptions& m_options;
    Constants m_constants;
    replay::ModuleCache& m_module_cache;
    Phases& m_phases;
    std::shared_ptr<backends::Stream> m_stream;
    std::shared_ptr<TrialMemory> m_trial;
    std::unique_ptr<Spread> m_spread;
    std::vector<NamedMemory> m_pools; ///< the first capture's scratch; adjacent ranges are joined
    std::vector<SuspectHalf> m_suspects;
    std::vector<Neighbours> m_neighbours; ///< regions that trials must place apart
    backends::RawGraph m_suspicious;      ///< graph of the first capture; set only if there are suspects
    /// The original without events and semaphores; runs instead of the original.
    std::optional<backends::RawGraph> m_reduced;
    std::string m_agreement; ///< how the original's results agree with the function's results; empty: not known
    std::chrono::nanoseconds m_took{0}; ///< time of the slowest run of the original
};

} // namespace warmgraph
