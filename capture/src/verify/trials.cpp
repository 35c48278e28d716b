#include "verify/trials.hpp"

#include <algorithm>
#include <mutex>
#include <span>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/event_wait.hpp"

namespace warmgraph {

namespace {

/// Whether runs differ exactly as the contents of scratch before them: `outcomes` tells which run gave which outcome. A
/// function that is nondeterministic by itself also differs on equal contents.
bool follows_scratch(std::span<const std::size_t> runs) noexcept
{
    bool is_repeated = false, differ = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        differ = differ || runs[i] != runs[0];
        if (i < k_poison.size()) continue;
        if (runs[i] != runs[i - k_poison.size()]) return false;
        is_repeated = true;
    }
    return differ && is_repeated;
}

/// For ever: work that never ends uses it.
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

Result<void> learn_spread(Spread& spread, std::size_t least, const std::function<Result<std::size_t>(std::size_t)>& run)
{
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < least || (i < k_most_own_runs && !spread.is_bitwise()); ++i) {
        auto outcome = run(i);
        if (!outcome) return std::unexpected(outcome.error());
        seen.push_back(*outcome);
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

Result<std::optional<backends::RawGraph>> reduced_for_trials(const backends::RawGraph& capture)
{
    if (!backends::has_outside_work(capture)) return std::nullopt;
    if (!capture.allocations.empty()) // built anew, a graph lacks the memory that the driver's own has
        return fail(ErrorCode::not_recordable,
                    "it works together with the outside (semaphores, events, host functions, waits for memory) and "
                    "allocates {} bytes by itself: it could be verified only with both left out; take scratch from "
                    "outside the graph (Recorder::alloc, NativeCapture::scratch)",
                    capture.allocations.front().memory.size);
    return backends::without_outside(capture);
}

Result<std::unique_ptr<backends::GraphExec>> instantiate_for_trials(backends::Device& device,
                                                                    const backends::RawGraph& capture)
{
    const auto reduced = reduced_for_trials(capture);
    if (!reduced) return std::unexpected(reduced.error());
    auto exec = *reduced ? device.instantiate(**reduced) : device.instantiate_captured(capture);
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
    if (auto done = m_stream->synchronize(); !done) return std::unexpected(done.error()); // tells what went wrong
    return true;
}

/// Work that was enqueued before a failure still uses the trial memory.
Result<void> Trials::end_trial(Result<void> launched)
{
    auto done = wait();
    if (!done && launched) return std::unexpected(done.error());
    if (done && !*done) {
        m_is_abandoned = true;
        m_memory->abandon();
        leak(m_stream);
        return fail(ErrorCode::not_recordable,
                    "a trial run took longer than {:.1f} s, ten times the call itself and a second more, and was given "
                    "up: what it waits for does not happen on copies",
                    std::chrono::duration<double>(m_limit).count());
    }
    // It was half done in copies: nothing of the caller's is in an unknown state.
    if (!launched && launched.error().code == ErrorCode::partly_launched)
        return fail(ErrorCode::driver_failed, "{}", launched.error().message);
    if (!launched) return launched;
    if (auto checked = m_memory->check_trial(); !checked) return checked;
    return m_check_each ? m_check_each() : Result<void>{};
}

Result<void> Trials::run(const std::shared_ptr<backends::GraphExec>& capture, ScratchPool& scratch, std::size_t index,
                         Outputs outputs)
{
    if (auto reset = m_memory->reset(0, outputs); !reset) return reset;
    if (auto poisoned = scratch.poison(k_poison[index % k_poison.size()]); !poisoned) return poisoned;
    auto ended = end_trial(capture->launch(*m_stream));
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
    if (const MemoryRef arena = executable.arena(); !arena.address.is_null())
        if (auto poisoned = m_device->bulk().fill(arena, k_poison[placement]); !poisoned) return poisoned;
    return end_trial(
        executable.rehearse(*m_stream, bindings_of(executable.graph(), m_memory->regions(), scalars, m_handles)));
}

Result<void> Trials::accept_all(replay::Executable& executable, const std::vector<std::uint64_t>& scalars,
                                const Spread& spread, Outputs outputs)
{
    for (std::size_t placement = 0; placement < k_placements; ++placement) {
        if (auto replayed = replay(executable, placement, scalars, outputs); !replayed) return replayed;
        if (auto accepted = spread.accept(m_memory->regions()); !accepted) return accepted;
    }
    return {};
}

Result<void> Trials::check_caller_memory() const
{
    if (m_is_abandoned) return {};
    auto intact = m_memory->check_in_place();
    if (!intact && intact.error().code == ErrorCode::verification_failed)
        return fail(ErrorCode::partly_launched, "a trial wrote where it must not: {}", intact.error().message);
    return intact;
}

} // namespace warmgraph
