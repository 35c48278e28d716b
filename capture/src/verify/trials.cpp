#include "verify/trials.hpp"

#include <algorithm>
#include <mutex>
#include <span>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/event_wait.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/clock.hpp"

namespace warmgraph {

namespace {

/// Keeps the object for ever, because work that never ends uses it.
void leak(std::shared_ptr<void> object)
{
    static std::mutex s_mutex;
    static auto& s_leaked = *new std::vector<std::shared_ptr<void>>; // never destroyed
    const std::scoped_lock lock{s_mutex};
    s_leaked.push_back(std::move(object));
}

} // namespace

std::vector<DType> region_types(const Frame& frame)
{
    std::vector<DType> result;
    for (const auto& tensor : frame.tensors) result.push_back(tensor.dtype);
    return result;
}

std::vector<std::uint8_t> compared_regions(const TrialMemory& memory, std::size_t count)
{
    std::vector<std::uint8_t> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = memory.is_writable(i) ? 1 : 0;
    return result;
}

Result<void> learn_spread(Spread& spread, std::size_t least, const std::function<Result<std::size_t>()>& run)
{
    for (std::size_t i = 0; i < least || (i < k_most_own_runs && !spread.is_bitwise()); ++i)
        if (auto ran = run(); !ran) return std::unexpected(ran.error());
    return spread.measure();
}

std::string verification_text(const Spread& spread, const cachefmt::Graph& graph)
{
    return spread.text() + (graph.semaphores.empty() ? "" : ", without its semaphores");
}

Result<std::optional<backends::RawGraph>> reduced_for_trials(const backends::RawGraph& capture)
{
    if (!backends::has_outside_work(capture)) return std::nullopt;
    if (!capture.allocations.empty()) // a graph built anew would lack the allocations of the driver's own graph
        return fail(ErrorCode::not_recordable,
                    "it uses semaphores, events, host functions or waits for memory, and allocates {} bytes in the "
                    "graph: it can be verified only without both; take scratch from outside the graph "
                    "(Recorder::alloc, NativeCapture::scratch)",
                    capture.allocations.front().memory.size);
    return backends::without_outside(capture);
}

Result<std::unique_ptr<backends::GraphExec>> instantiate_for_trials(backends::Device& device,
                                                                    const backends::RawGraph& capture)
{
    const auto reduced = reduced_for_trials(capture);
    if (!reduced) return std::unexpected(reduced.error());
    auto exec = *reduced ? device.instantiate(**reduced) : device.recording().instantiate_captured(capture);
    if (!exec) return within("instantiate its capture", exec.error());
    return exec;
}

Result<bool> Trials::wait()
{
    auto event = m_stream->record_event();
    if (!event && event.error().code != ErrorCode::unsupported) return std::unexpected(event.error());
    if (event) {
        auto done = backends::wait_for(**event, m_limit);
        if (!done || !*done) return done;
    }
    // synchronize() returns the work's error.
    if (auto done = m_stream->synchronize(); !done) return std::unexpected(done.error());
    return true;
}

/// Waits for the trial's work and checks its memory. Also waits after a failed launch, because work that was enqueued
/// before the failure still uses the trial memory.
Result<void> Trials::end_trial(Result<void> launched)
{
    auto done = wait();
    m_waited = system_clock().steady();
    if (!done && launched) return std::unexpected(done.error());
    if (done && !*done) {
        m_is_abandoned = true;
        m_memory->abandon();
        leak(m_stream);
        return fail(ErrorCode::not_recordable,
                    "a test run took longer than {:.1f} s (ten times the call plus one second) and was stopped: it "
                    "waits for something that does not happen on copies of the call's memory",
                    std::chrono::duration<double>(m_limit).count());
    }
    // The work was launched only in part, but it ran on copies: the caller's memory is not in an unknown state.
    if (!launched && launched.error().code == ErrorCode::partly_launched)
        return fail(ErrorCode::driver_failed, "{}", launched.error().message);
    if (!launched) return launched;
    if (auto checked = m_memory->check_trial(); !checked) return checked;
    return m_check_each ? m_check_each() : Result<void>{};
}

Result<void> Trials::run(const std::shared_ptr<backends::GraphExec>& capture, ScratchPool& scratch, ScratchHolds holds,
                         Outputs outputs)
{
    if (auto reset = m_memory->reset(0, outputs); !reset) return reset;
    if (holds == ScratchHolds::zeros)
        if (auto cleared = scratch.clear(); !cleared) return cleared;
    const auto begun = system_clock().steady();
    auto ended = end_trial(capture->launch(*m_stream));
    const std::chrono::nanoseconds took = m_waited - begun;
    if (ended) m_fastest_run = m_fastest_run.count() == 0 ? took : std::min(m_fastest_run, took);
    if (m_is_abandoned) {
        leak(capture);
        scratch.abandon();
    }
    return ended;
}

Result<void> Trials::replay(replay::Executable& executable, std::size_t placement,
                            const std::vector<std::uint64_t>& scalars, Outputs outputs)
{
    if (auto reset = m_memory->reset(placement, outputs); !reset) return reset;
    return end_trial(
        executable.rehearse(*m_stream, bindings_of(executable.graph(), m_memory->regions(), scalars, m_handles)));
}

Result<void> Trials::accept_all(replay::Executable& executable, const std::vector<std::uint64_t>& scalars,
                                const Spread& spread, Outputs outputs)
{
    for (std::size_t placement = 0; placement < k_placements; ++placement)
        if (auto accepted = accept_at(placement, executable, scalars, spread, outputs); !accepted) return accepted;
    return {};
}

Result<void> Trials::accept_at(std::size_t placement, replay::Executable& executable,
                               const std::vector<std::uint64_t>& scalars, const Spread& spread, Outputs outputs)
{
    constexpr int k_most_tries = 3;
    for (int tries = 1;; ++tries) {
        if (auto replayed = replay(executable, placement, scalars, outputs); !replayed) return replayed;
        auto accepted = spread.accept(m_memory->regions());
        if (accepted || tries == k_most_tries || !spread.is_near(m_memory->regions())) return accepted;
    }
}

Result<void> Trials::check_caller_memory() const
{
    if (m_is_abandoned) return {};
    auto intact = m_memory->check_in_place();
    if (!intact && intact.error().code == ErrorCode::verification_failed)
        return fail(ErrorCode::partly_launched, "a test run wrote to memory outside its copies: {}",
                    intact.error().message);
    return intact;
}

} // namespace warmgraph
