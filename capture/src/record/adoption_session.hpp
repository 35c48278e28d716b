// One adoption of somebody's graph: its arguments are checked (adoption_arguments.cpp), it is read and classified
// (adoption.cpp), the original shows what is right (adoption_original.cpp), and the restored one is held to that.
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

/// The graph read back, and where the call's tensors were.
[[nodiscard]] Result<CapturedGraph> read_capture(const Subject& subject, const Frame& frame,
                                                 const AdoptedCapture& capture);
/// invalid_argument where it is not what the function declares. `which`: "first".
[[nodiscard]] Result<void> check_capture(const Subject& subject, const Frame& frame, const AdoptedCapture& capture,
                                         std::string_view which);

class AdoptionSession {
public:
    AdoptionSession(const Subject& subject, const Frame& frame, const AdoptedCapture& first,
                    const AdoptOptions& options, replay::ModuleCache& modules, Phases& phases)
        : m_subject(subject),
          m_device(*subject.device),
          m_frame(frame),
          m_first(first),
          m_options(options),
          m_constants(subject.device, named(subject.interface.constants), options.most_constant_bytes),
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
    [[nodiscard]] Result<Classified> classified(const AdoptedCapture* second);
    [[nodiscard]] Result<void> judge_variables(Classified& classified, RestorationRequest& request);
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
    [[nodiscard]] Result<RestorationRequest> request(cachefmt::EntryHeader header, Classified classified);
    [[nodiscard]] std::function<std::optional<MemoryRef>(std::uint64_t)> allocation_at() const;
    [[nodiscard]] Trials trials() const;

    const Subject& m_subject;
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
    std::vector<NamedMemory> m_pools; ///< the first capture's scratch; what lies side by side is one
    std::vector<SuspectHalf> m_suspects;
    std::vector<Neighbours> m_neighbours;        ///< that trials have to put apart
    backends::RawGraph m_suspicious;             ///< the first capture, where there are suspects
    std::optional<backends::RawGraph> m_reduced; ///< of an original that works with the outside: it is run without that
    std::string m_agreement;                     ///< of the original with what the function gave; empty: not known
    std::chrono::nanoseconds m_took{0};          ///< the slowest run of the original
};

} // namespace warmgraph
