// The misses of calls (call_outcomes.hpp), and recordings that callers refused.
#include <algorithm>
#include <atomic>

#include <unistd.h>

#include "cache/cache_impl.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/call/new_miss.hpp"
#include "warmgraph/throwing.hpp"

namespace warmgraph {

namespace {

std::string_view name_of(Policy policy) noexcept
{
    switch (policy) {
    case Policy::read_write: return "read_write";
    case Policy::read_only: return "read_only";
    case Policy::refresh: return "refresh";
    case Policy::off: return "off";
    case Policy::require_hit: return "require_hit";
    case Policy::no_compile: return "no_compile";
    }
    return "unknown";
}

/// Returns a new id for a miss. If one miss ends twice (the call ran without a graph and was recorded later), the
/// second end replaces the first because it has the same id.
std::string new_miss_id()
{
    static const std::string k_process = random_uuid();
    static std::atomic<std::uint64_t> s_count = 0;
    return fmt::format("{}-{}", k_process, ++s_count);
}

/// Returns the time with milliseconds, because the order of several misses within one second must be known.
std::string now_text()
{
    const auto now = system_clock().wall();
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    std::string text = to_iso8601(now);
    return text.insert(text.size() - 1, fmt::format(".{:03}", since % 1000));
}

} // namespace

store::Miss new_miss(Policy policy)
{
    store::Miss miss;
    miss.id = new_miss_id();
    miss.time = now_text();
    miss.host = host_name();
    miss.process = static_cast<std::uint64_t>(::getpid());
    miss.policy = name_of(policy);
    return miss;
}

store::Miss Counters::refused_by_caller(const std::string& function, Policy policy, const Refusal& refusal)
{
    constexpr std::size_t k_most = 1024; ///< the most reasons that one process counts
    const std::scoped_lock lock{m_mutex};
    if (m_refused_by_callers.size() >= k_most) m_refused_by_callers.clear();
    store::Miss& known = m_refused_by_callers[{function, refusal.text}];
    store::Miss now = new_miss(policy);
    if (!known.id.empty()) now.id = known.id;
    now.calls = known.calls + std::max<std::uint64_t>(refusal.calls, known.id.empty() ? 1 : 0);
    now.reason = refusal.text;
    now.end = store::MissEnd::refused;
    known = now;
    return now;
}

void Cache::note_refusal(const std::string& name, const Device& device, const Refusal& refusal)
{
    value_or_raise(cachefmt::check_name("function name", name));
    if (refusal.text.empty()) raise({ErrorCode::invalid_argument, "the reason of a refusal is empty: give a text"});
    m_impl->counters.refusal(refusal.calls);
    if (!m_impl->store) return;
    const cachefmt::FunctionKey key = m_impl->settings.key(name, *DeviceAccess::impl(device)->device);
    store::FunctionUsage usage;
    usage.refusals = refusal.calls;
    if (refusal.calls != 0) usage.events.add(store::EventKind::refused, refusal.word, {refusal.calls, 0});
    m_impl->store->add_usage_soon(key, usage);
    m_impl->store->note_miss(key, m_impl->counters.refused_by_caller(name, m_impl->settings.policy, refusal), "");
}

} // namespace warmgraph
