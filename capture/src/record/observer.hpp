// Observer: captures the callable, which runs no work, and draws conclusions from the captures.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "classify/classify.hpp"
#include "classify/host_addresses.hpp"
#include "classify/unwritten_bytes.hpp"
#include "verify/trial_memory.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/capture/shadow_set.hpp"

namespace warmgraph {

struct Observation {
    Classification classified;
    std::vector<std::string> scalar_proofs; ///< texts such as "position: proven at all 2,048 values"
    std::vector<std::uint32_t> groups;      ///< as Captures::groups
    /// Number of parameter words that were never written; they are classified as zeros.
    std::size_t unwritten_words = 0;
};

class Observer {
public:
    /// Captures are made with `memory` at placement 0 and with `scratch`. All arguments outlive this object.
    Observer(const CaptureTarget& target, const Frame& frame, TrialMemory& memory, ScratchPool& scratch,
             const std::shared_ptr<backends::Stream>& stream, RunContext& context, UnusedWords unused);
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    ~Observer();

    /// Call this once. `probing`: time for probing scalars. `find_more` may add facts before classification.
    [[nodiscard]] Result<Observation> observe(std::chrono::milliseconds probing,
                                              const std::function<Result<void>(Captures&)>& find_more);
    /// The capture at placement 0 as the driver gave it, except that bytes that were never written are zeros.
    [[nodiscard]] const backends::RawGraph& capture() const noexcept { return m_capture; }
    /// Returns how many words of parameters were never written, as far as this is known yet.
    [[nodiscard]] std::size_t unwritten_words() const noexcept { return m_unwritten ? count_words(*m_unwritten) : 0; }
    /// Captures the callable again at placement 0, with other scalars.
    [[nodiscard]] Result<backends::RawGraph> capture_at(const std::vector<std::uint64_t>& scalars);
    /// Returns Recording::allocation_at of the device; null on devices without flat addresses.
    [[nodiscard]] std::function<std::optional<MemoryRef>(std::uint64_t)> allocations() const;

private:
    struct FreshAddresses;
    [[nodiscard]] Result<CapturedGraph> capture_here(const std::vector<std::uint64_t>& scalars,
                                                     const StackState& stack = {});
    [[nodiscard]] Result<CapturedGraph> capture_in(FreshAddresses& at, const StackState& stack = {});
    [[nodiscard]] Result<CapturedGraph> run_captured(const std::vector<MemoryRef>& regions, ScratchPool& scratch,
                                                     const std::vector<std::uint64_t>& scalars,
                                                     const StackState& stack);
    [[nodiscard]] Result<void> know_other_memory(Captures& captures) const;
    [[nodiscard]] Result<Captures> capture_all();
    [[nodiscard]] Result<void> capture_moved(Captures& captures, ShadowGrouping grouping);
    [[nodiscard]] Result<CapturedGraph> capture_elsewhere(const Shuffle& shuffle, ShadowGrouping grouping,
                                                          const Captures& captures);
    [[nodiscard]] Result<bool> asks_how_tensors_lie(const Captures& captures);
    [[nodiscard]] Result<void> capture_where_tensors_overlap(Captures& captures);
    [[nodiscard]] Result<void> check_repeated(const Captures& captures);
    [[nodiscard]] Result<std::vector<std::string>> probe(Captures& captures, std::chrono::milliseconds time);
    [[nodiscard]] Result<std::size_t> probe_scalar(Captures& captures, std::size_t scalar,
                                                   const std::vector<std::uint64_t>& values, std::size_t least,
                                                   std::chrono::steady_clock::time_point deadline);
    [[nodiscard]] bool are_the_same(Captures captures) const;
    [[nodiscard]] Result<Captures> without_stack_remains(Captures captures);
    [[nodiscard]] Result<Captures> capture_until_repeated(Captures captures);
    void clear_unwritten(Captures& captures) const;
    [[nodiscard]] std::optional<Captures> without_host_addresses(const Captures& captures) const;
    [[nodiscard]] Result<void> check_unwritten() const;

    const CaptureTarget& m_target;
    const Frame& m_frame;
    TrialMemory& m_memory;
    ScratchPool& m_scratch;
    std::shared_ptr<backends::Stream> m_stream;
    RunContext& m_context;
    UnusedWords m_unused;
    backends::RawGraph m_capture;
    // Addresses of the captures; kept until everything is classified, because no address may be used twice.
    std::deque<FreshAddresses> m_places;
    HostStack m_stack;        // the stack of the recording thread
    StackMovement m_movement; // the stack's movement between the first two captures
    /// Bytes of kernel parameters that were never written, according to all captures so far. nullopt: no captures yet.
    std::optional<std::vector<UnwrittenByte>> m_unwritten;
};

} // namespace warmgraph
