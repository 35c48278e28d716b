#include "record/answer.hpp"

#include <algorithm>
#include <new>

#include "warmgraph/backends/event_wait.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/clock.hpp"

namespace warmgraph {

namespace {
constexpr std::chrono::seconds k_settling{1};
} // namespace

Answer::Answer(std::shared_ptr<backends::Device> device, const DeclaredHandles& handles)
    : m_device(std::move(device)), m_waits_outside(!handles.semaphores.empty() || !handles.events.empty())
{
}

Answer::~Answer()
{
    if (m_is_abandoned) return;
    for (const MemoryRef& memory : m_results)
        if (!memory.address.is_null()) m_device->release(memory);
}

bool Answer::settle() noexcept
try {
    if (!m_stream || m_took.count() != 0) return true;
    if (!m_event) { // the callable threw, or its results could not be copied
        auto event = m_stream->record_event();
        if (!event) return true; // no event can show whether the work is done; the memory is freed
        m_event = std::move(*event);
    }
    const auto done = backends::wait_for(*m_event, k_settling);
    m_is_abandoned = done && !*done;
    return !m_is_abandoned;
} catch (const std::bad_alloc&) { // no memory for an error's text
    return true;
}

Result<void> Answer::allocate(const TrialMemory& memory)
{
    for (std::size_t i = 0; i < memory.original().size(); ++i) {
        MemoryRef& results = m_results.emplace_back(MemoryRef{{}, memory.original()[i].size});
        if (!memory.is_writable(i) || results.size == 0) continue;
        const bool on_host = m_device->space_of(memory.original()[i].address) == backends::MemorySpace::host;
        auto made = on_host ? m_device->allocate_host(results.size) : m_device->allocate(results.size);
        if (!made) return within("allocate memory for a copy of the call's results", made.error());
        results.address = made->address;
    }
    return {};
}

Result<void> Answer::begin(const std::shared_ptr<backends::Stream>& stream)
{
    m_stream = stream;
    auto watch = m_device->recording().watch_enqueues(*stream);
    if (!watch) return std::unexpected(watch.error());
    m_watch = std::move(*watch);
    m_begun = m_returned = m_busy = system_clock().steady();
    return {};
}

Result<void> Answer::end(const RunContext& context, const TrialMemory& memory)
{
    m_returned = m_busy = system_clock().steady();
    m_stray = context.stray ? context.stray : m_watch->stray();
    m_waits_outside = m_waits_outside || m_watch->waits_outside();
    m_watch.reset();
    for (std::size_t i = 0; i < m_results.size(); ++i) {
        if (m_results[i].address.is_null()) continue;
        const MemoryRef& from = memory.original()[i];
        const auto space = m_device->space_of(from.address);
        backends::RawCopy copy{from.address, m_results[i].address, from.size};
        copy.source_space = copy.destination_space = space;
        if (auto copied = m_stream->copy(copy); !copied) return within("copy the call's results", copied.error());
    }
    auto event = m_stream->record_event();
    if (event)
        m_event = std::move(*event);
    else if (event.error().code != ErrorCode::unsupported)
        return std::unexpected(event.error());
    if (m_event) static_cast<void>(m_event->keep_moment()); // without an event only polls show when the work ended
    return {};
}

Result<bool> Answer::is_done()
{
    if (!m_event) return true; // without an event wait() will synchronise
    auto done = m_event->is_done();
    const auto now = system_clock().steady();
    if (done && *done)
        note_done(now);
    else if (done)
        m_busy = now;
    return done;
}

Result<void> Answer::wait()
{
    const auto was_done = is_done(); // if the work is not done now, it ends during synchronize()
    if (auto done = m_stream->synchronize(); !done) return within("wait for the call's results", done.error());
    const auto now = system_clock().steady();
    if (was_done && !*was_done) m_busy = now;
    note_done(now);
    return {};
}

void Answer::note_done(std::chrono::steady_clock::time_point now) noexcept
{
    if (m_took.count() == 0) m_took = std::max(std::chrono::nanoseconds{now - m_begun}, std::chrono::nanoseconds{1});
}

std::chrono::nanoseconds Answer::took(std::chrono::nanoseconds work) const noexcept
{
    // Asks the driver only here, not in note_done(), because the driver may know the time only a moment later.
    if (const auto told = m_event ? m_event->done_at() : std::nullopt) return *told - m_begun;
    const std::chrono::nanoseconds at_least = std::min(std::chrono::nanoseconds{m_busy - m_begun}, m_took);
    return std::clamp(m_returned - m_begun + work, at_least, m_took);
}

Result<void> Answer::check_enqueued() const
{
    if (!m_stray) return {};
    return fail(ErrorCode::not_recordable,
                "it enqueues work outside the recorder's stream ({}), which a capture would not contain: enqueue "
                "everything in Recorder::stream(), or in streams that were forked from it by events",
                *m_stray);
}

} // namespace warmgraph
