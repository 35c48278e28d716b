// Function::Impl: a call that no entry could serve is kept as it was judged, in the process and beside the entries.
#include <algorithm>
#include <atomic>

#include <unistd.h>

#include "function_impl.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/guards/json.hpp"

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

/// Of this process: a second end of the same miss (recorded after it ran as it is) takes the place of the first.
std::string new_miss_id()
{
    static const std::string k_process = random_uuid();
    static std::atomic<std::uint64_t> s_count = 0;
    return fmt::format("{}-{}", k_process, ++s_count);
}

/// With milliseconds: starts follow each other within a second, and the newest of several functions is asked for.
std::string now_text()
{
    const auto now = system_clock().wall();
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    std::string text = to_iso8601(now);
    return text.insert(text.size() - 1, fmt::format(".{:03}", since % 1000));
}

Miss told(const store::Miss& miss)
{
    Miss result{miss.time,
                miss.reason,
                std::string(to_string(miss.end)),
                short_hex(miss.call),
                miss.nearest ? short_hex(*miss.nearest) : "",
                miss.variants};
    for (const auto& [fact, recorded, now, cure] : miss.differences)
        result.differences.push_back({fact, recorded, now, cure});
    result.agree = miss.agree;
    return result;
}

} // namespace

void Function::Impl::begin_miss(Journey& journey, std::string reason, const Judgement& judgement) const
{
    m_cache->quiet.note_miss();
    store::Miss& miss = journey.miss.emplace();
    miss.id = new_miss_id();
    miss.time = now_text();
    miss.host = host_name();
    miss.process = static_cast<std::uint64_t>(::getpid());
    miss.policy = name_of(m_policy);
    miss.reason = std::move(reason);
    miss.call = journey.digest;
    miss.variants = judgement.variants;
    if (judgement.nearest) miss.nearest = m_shelf->name_on_disk({m_key, *judgement.nearest});
    miss.agree = judgement.agree;
    const std::size_t kept = std::min(judgement.differences.size(), store::k_most_missed_facts);
    for (const auto& [fact, recorded, now, cure] : std::span{judgement.differences}.first(kept))
        miss.differences.push_back({fact, recorded, now, cure});
    miss.more = judgement.differences.size() - kept;
}

/// Under the function's lock. Nothing where the journey is no miss.
void Function::Impl::note_miss(const Journey& journey, store::MissEnd end)
{
    if (!journey.miss) return;
    store::Miss miss = *journey.miss;
    miss.end = end;
    if (m_cache->store) m_cache->store->note_miss(m_key, miss, guards::to_json(journey.now));
    store::add_miss(m_misses, std::move(miss));
}

std::vector<Miss> Function::Impl::misses() const
{
    refuse_inside_itself("asked for its misses");
    const std::scoped_lock lock{m_mutex};
    std::vector<Miss> result;
    std::ranges::transform(m_misses, std::back_inserter(result), told);
    return result;
}

} // namespace warmgraph
