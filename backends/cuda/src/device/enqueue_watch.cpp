#include "device/enqueue_watch.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "code/image_tracker.hpp"
#include "device/watched_calls.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::backends::cuda {
namespace {

using Kind = WatchedCall::Kind;

/// Returns a comparable handle: a null stream becomes one of the two default streams.
CUstream real_stream(CUstream stream, bool is_per_thread) noexcept
{
    if (stream != nullptr) return stream;
    return is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY; // NOLINT: the header's casts
}

/// The state of one watch, used only by its thread.
class Watcher {
public:
    Watcher(const Driver& driver, CUstream stream) : m_driver(driver), m_members{real_stream(stream, false)} {}

    void see(const WatchedCall& call, const void* params);
    /// Notes that a call could not be watched.
    void lose() noexcept { m_is_blind = true; }
    [[nodiscard]] std::optional<std::string> stray() const;
    [[nodiscard]] bool waits_outside() const noexcept { return m_waits; }

    Watcher* outer = nullptr;

private:
    [[nodiscard]] bool is_member(CUstream stream) const
    {
        return std::ranges::find(m_members, stream) != m_members.end();
    }
    void see_event(const WatchedCall& call, CUevent event, CUstream stream);
    [[nodiscard]] bool captures(CUstream stream) const noexcept;

    const Driver& m_driver;
    std::vector<CUstream> m_members;
    std::vector<CUevent> m_events; ///< events that were last recorded in a member
    const WatchedCall* m_stray = nullptr;
    CUstream m_stray_stream = nullptr;
    bool m_waits = false;
    bool m_is_blind = false;
};

void Watcher::see(const WatchedCall& call, const void* params)
{
    const CUstream stream = real_stream(call.stream != nullptr ? call.stream(params) : nullptr, call.is_per_thread);
    if (call.event != nullptr) return see_event(call, call.event(params), stream);
    const bool belongs = is_member(stream) && call.kind != Kind::graph && call.kind != Kind::synchronise;
    const bool waits = call.kind == Kind::enqueue_wait || (call.kind == Kind::batch && call.is_waiting(params));
    if (belongs && !waits) return;
    if (captures(stream)) return;
    m_waits = m_waits || waits;
    if (belongs || m_stray != nullptr) return;
    m_stray = &call;
    m_stray_stream = stream;
}

void Watcher::see_event(const WatchedCall& call, CUevent event, CUstream stream)
{
    const bool is_ours = std::ranges::find(m_events, event) != m_events.end();
    if (call.kind == Kind::record_event) {
        if (is_member(stream) && !is_ours) m_events.push_back(event);
        if (!is_member(stream)) std::erase(m_events, event);
    } else if (is_ours) {
        if (!is_member(stream)) m_members.push_back(stream);
    } else if (!captures(stream)) {
        m_waits = true;
    }
}

/// True if the stream is capturing, so that the call ran nothing. Called only for stray calls and waits, which are
/// rare. The legacy stream never captures, and asking it fails while another stream captures.
bool Watcher::captures(CUstream stream) const noexcept
{
    if (stream == CU_STREAM_LEGACY) return false; // NOLINT: the header's cast
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return m_driver.status("cuStreamIsCapturing", m_driver.cuStreamIsCapturing, stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

std::optional<std::string> Watcher::stray() const
{
    if (m_stray == nullptr && m_is_blind) return "a call that could not be watched (no host memory)";
    if (m_stray == nullptr) return std::nullopt;
    const std::string_view full = m_stray->name;
    const std::string_view name = full.substr(0, std::min(full.find("_v"), full.find("_pt")));
    if (m_stray->kind == Kind::graph) return fmt::format("{} of a graph", name);
    if (m_stray->kind == Kind::synchronise) return fmt::format("{}, which synchronises", name);
    if (m_stray_stream == CU_STREAM_LEGACY) return fmt::format("{} in the legacy default stream", name); // NOLINT
    if (m_stray_stream == CU_STREAM_PER_THREAD) // NOLINT: the header's cast
        return fmt::format("{} in the per-thread default stream", name);
    return fmt::format("{} in another stream ({:#x})", name, reinterpret_cast<std::uintptr_t>(m_stray_stream));
}

/// This thread's newest watch. A plain pointer, because callbacks may come while the thread's objects go away.
constinit thread_local Watcher* t_watcher = nullptr;

class CudaEnqueueWatch final : public EnqueueWatch {
public:
    /// REQUIRES: the tracker's begin_watch() succeeded.
    CudaEnqueueWatch(const Driver& driver, CUstream stream) : m_watcher(std::make_unique<Watcher>(driver, stream))
    {
        m_watcher->outer = std::exchange(t_watcher, m_watcher.get());
    }
    CudaEnqueueWatch(const CudaEnqueueWatch&) = delete;
    CudaEnqueueWatch& operator=(const CudaEnqueueWatch&) = delete;
    ~CudaEnqueueWatch() override
    {
        ImageTracker::end_watch();
        Watcher** at = &t_watcher;
        while (*at != nullptr && *at != m_watcher.get()) at = &(*at)->outer;
        if (*at != nullptr) {
            *at = m_watcher->outer;
            return;
        }
        // The thread that made the watch still points to it, and this thread cannot change that: leak it.
        static_cast<void>(m_watcher.release()); // NOLINT(bugprone-unused-return-value)
        log().error(
            "a watch of enqueued work was destroyed by another thread than the one that made it: its memory is leaked");
    }
    [[nodiscard]] std::optional<std::string> stray() const override { return m_watcher->stray(); }
    [[nodiscard]] bool waits_outside() const override { return m_watcher->waits_outside(); }

private:
    std::unique_ptr<Watcher> m_watcher;
};

} // namespace

bool is_watching() noexcept { return t_watcher != nullptr; }

void see_call(CUpti_CallbackId which, const CUpti_CallbackData& data) noexcept
{
    // Skip this backend's own transfers, which belong to no stream.
    if (OutsideCapture::is_active()) return;
    const WatchedCall* const call = find_watched_call(which);
    if (call == nullptr || *static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS) return;
    for (Watcher* watcher = t_watcher; watcher != nullptr; watcher = watcher->outer) {
        try {
            watcher->see(*call, data.functionParams);
        } catch (...) {
            watcher->lose();
        }
    }
}

Result<std::unique_ptr<EnqueueWatch>> watch_enqueues(const Core& core, CUstream stream)
{
    if (stream == nullptr)
        return fail(ErrorCode::invalid_argument, "enqueued work can only be watched in a stream of this device");
    if (auto begun = ImageTracker::begin_watch(); !begun) return std::unexpected(begun.error());
    return std::make_unique<CudaEnqueueWatch>(*core.driver, stream);
}

} // namespace warmgraph::backends::cuda
