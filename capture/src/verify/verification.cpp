#include "verify/verification.hpp"

#include <algorithm>
#include <span>

#include "warmgraph/capture/scratch.hpp"

namespace warmgraph {

namespace {

/// Whether runs differ exactly as the contents of scratch before them: `outcomes` tells which run gave which outcome. A
/// function that is nondeterministic by itself also differs on equal contents. The first run does not count: its scratch
/// is made while it runs, and nobody wrote it.
bool follows_scratch(std::span<const std::size_t> outcomes) noexcept
{
    const auto runs = outcomes.subspan(1);
    bool is_repeated = false, differ = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        differ = differ || runs[i] != runs[0];
        if (i < k_poison.size()) continue;
        if (runs[i] != runs[i - k_poison.size()]) return false;
        is_repeated = true;
    }
    return differ && is_repeated;
}

} // namespace

std::vector<DType> region_types(const Frame& frame)
{
    std::vector<DType> result;
    for (const auto& tensor : frame.tensors) result.push_back(tensor.dtype);
    return result;
}

Result<void> learn_spread(Spread& spread, const std::function<Result<Outcomes>(std::size_t)>& run)
{
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < k_runs || (i < k_runs_when_they_differ && !spread.is_bitwise()); ++i) {
        auto outcomes = run(i);
        if (!outcomes) return std::unexpected(outcomes.error());
        seen.push_back(spread.add(std::move(*outcomes)));
    }
    if (auto measured = spread.measure(); !measured) return measured;
    // A tolerance as wide as what scratch happens to hold would accept anything.
    if (follows_scratch(seen))
        return fail(
            ErrorCode::not_recordable,
            "its results follow what scratch memory held before the run: it reads scratch that it did not write; "
            "clear it first, or declare what must last from call to call as a state");
    return {};
}

std::string verification_text(const Spread& spread, const cachefmt::Graph& graph)
{
    return spread.text() + (graph.semaphores.empty() ? "" : ", without its semaphores");
}

namespace {

/// Built anew, a graph lacks the memory that the driver's own has.
Error allocates_by_itself(const backends::RawGraph& graph)
{
    return {ErrorCode::not_recordable,
            fmt::format("it may use semaphores and allocates {} bytes by itself: it could be verified only with both "
                        "left out; take scratch from outside the graph (Recorder::alloc, NativeCapture::scratch)",
                        graph.allocations.front().memory.size)};
}

} // namespace

Result<backends::RawGraph> runnable_on_copies(backends::RawGraph graph)
{
    if (!graph.allocations.empty() && backends::has_semaphores(graph))
        return std::unexpected(allocates_by_itself(graph));
    return backends::without_semaphores(std::move(graph));
}

Result<Outcomes> TrialRun::run(std::size_t index, const std::vector<std::uint64_t>& scalars)
{
    if (auto reset = m_trial.reset(index % k_placements); !reset) return std::unexpected(reset.error());
    if (auto poisoned = m_scratch.poison(k_poison[index % k_poison.size()]); !poisoned)
        return std::unexpected(poisoned.error());
    const RunInputs inputs{m_frame.tensors, m_trial.regions(), scalars, m_frame.values};
    auto ran = m_subject.handles.semaphores.empty() ? m_subject.run(inputs, m_scratch, m_stream, m_context)
                                                    : run_capture(inputs);
    // Work that was enqueued before a failure still uses the trial memory.
    if (auto done = m_stream->synchronize(); !done && ran) return std::unexpected(done.error());
    if (!ran) return std::unexpected(ran.error());
    return m_trial.collect();
}

Result<void> TrialRun::run_capture(const RunInputs& inputs)
{
    auto graph = captured_run(m_subject, inputs, m_scratch, m_stream, m_context);
    if (!graph) return std::unexpected(graph.error());
    if (!graph->allocations.empty()) return std::unexpected(allocates_by_itself(*graph));
    auto exec = m_subject.device->instantiate(backends::without_semaphores(std::move(*graph)));
    if (!exec) return within("instantiate its capture without semaphores", exec.error());
    m_exec = std::move(*exec);
    return m_exec->launch(*m_stream);
}

Result<Outcomes> TrialReplay::run(replay::Executable& executable, std::size_t placement,
                                  const std::vector<std::uint64_t>& scalars)
{
    if (auto reset = m_trial.reset(placement); !reset) return std::unexpected(reset.error());
    if (const MemoryRef arena = executable.arena(); !arena.address.is_null())
        if (auto poisoned = fill_memory(m_device, arena, k_poison[placement]); !poisoned)
            return std::unexpected(poisoned.error());
    const auto bindings = bindings_of(executable.graph(), m_trial.regions(), scalars, m_handles);
    auto launched = executable.rehearse(m_stream, bindings);
    // Work that was enqueued before a failure still uses the trial memory.
    if (auto done = m_stream.synchronize(); !done && launched) return std::unexpected(done.error());
    // It was half done in copies: nothing of the caller's is in an unknown state.
    if (!launched && launched.error().code == ErrorCode::partly_launched)
        return fail(ErrorCode::driver_failed, "{}", launched.error().message);
    if (!launched) return std::unexpected(launched.error());
    return m_trial.collect();
}

Result<void> TrialReplay::accept_all(replay::Executable& executable, const std::vector<std::uint64_t>& scalars,
                                     const Spread& spread)
{
    for (std::size_t placement = 0; placement < k_placements; ++placement) {
        auto outcomes = run(executable, placement, scalars);
        if (!outcomes) return std::unexpected(outcomes.error());
        if (auto accepted = spread.accept(*outcomes); !accepted) return accepted;
    }
    return {};
}

Result<void> TrialReplay::check_caller_memory() const
{
    auto intact = m_trial.check_in_place();
    if (!intact && intact.error().code == ErrorCode::verification_failed)
        return fail(ErrorCode::partly_launched, "the restored graph wrote where it must not: {}",
                    intact.error().message);
    return intact;
}

} // namespace warmgraph
