#include "warmgraph/profile/shape_profile.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>

#include <unistd.h>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph {
namespace {

constexpr std::chrono::milliseconds k_collect{500}; ///< news are collected for this long and then written together
/// Pause before a new attempt; other processes hold the lock for a few milliseconds.
constexpr std::chrono::milliseconds k_when_busy{20};
constexpr std::chrono::milliseconds k_patience{200}; ///< the longest wait for other writers at the end

/// Returns the time with milliseconds, so that the choices of several processes that start together have an order.
std::string moment()
{
    const auto now = system_clock().wall();
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    std::string text = to_iso8601(now);
    return text.insert(text.size() - 1, fmt::format(".{:03}", since % 1000));
}

} // namespace

// --- FunctionProfile

FunctionProfile::FunctionProfile(profile::Profile empty) : m_own(std::move(empty)), m_part(&m_own.parts[random_uuid()])
{
    m_part->host = host_name().substr(0, 64);
}

void FunctionProfile::add(const profile::Shape& shape, std::uint64_t calls, bool is_news)
{
    const std::scoped_lock lock{m_mutex};
    profile::count(*m_part, shape, calls);
    m_part->last = moment();
    m_is_worth_a_file |= is_news;
    m_has_news = true;
}

void FunctionProfile::decide(const profile::BucketRequest& wish, std::vector<std::int64_t> buckets)
{
    const std::scoped_lock lock{m_mutex};
    m_own.learnt[wish] = {moment(), std::move(buckets)};
    m_is_worth_a_file = m_has_news = true;
}

profile::Profile FunctionProfile::own() const
{
    const std::scoped_lock lock{m_mutex};
    return m_own;
}

profile::Calls FunctionProfile::calls() const
{
    const std::scoped_lock lock{m_mutex};
    return m_part->calls;
}

std::optional<profile::Profile> FunctionProfile::take_new_counts()
{
    const std::scoped_lock lock{m_mutex};
    if (!m_is_worth_a_file || !m_has_news) return std::nullopt;
    m_has_news = false;
    return m_own;
}

void FunctionProfile::put_back() noexcept
{
    const std::scoped_lock lock{m_mutex};
    m_has_news = true;
}

bool FunctionProfile::is_worth_a_file() const
{
    const std::scoped_lock lock{m_mutex};
    return m_is_worth_a_file;
}

// --- ShapeCounter

std::size_t ShapeCounter::Hash::operator()(const Key& key) const noexcept
{
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325U; // FNV-1a over words
    for (const std::int64_t word : key) hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100'0000'01B3U;
    return hash ^ (hash >> 32U);
}

bool ShapeCounter::count(const Key& key, const MakeShape& make, bool is_news, FunctionProfile& into)
{
    ++m_calls;
    if (m_last == nullptr || *m_last_key != key) {
        auto found = m_counted.find(key);
        if (found == m_counted.end()) {
            if (m_counted.size() >= profile::k_most_shapes) {
                tell(into);
                m_counted.clear();
            }
            found = m_counted.emplace(key, ShapeCount{make(), is_news}).first;
            m_last = &found->second;
            m_last_key = &found->first;
            into.add(m_last->shape, 1, is_news);
            return true;
        }
        m_last = &found->second;
        m_last_key = &found->first;
    }
    ++m_last->calls;
    if (!std::has_single_bit(m_calls)) return false;
    tell(into);
    return true;
}

void ShapeCounter::tell(FunctionProfile& profile)
{
    for (auto& [key, counted] : m_counted)
        if (const std::uint64_t calls = std::exchange(counted.calls, 0); calls != 0)
            profile.add(counted.shape, calls, counted.is_news);
}

// --- ProfileKeeper

ProfileKeeper::ProfileKeeper(store::LocalStore& store, Writing writing, Fault fault)
    : m_store(store),
      m_library(store.tiers(), [&store](const store::ArtifactName& name) { return store.try_artifact_lock(name); }),
      m_writing(writing),
      m_fault(std::move(fault))
{
}

std::shared_ptr<FunctionProfile> ProfileKeeper::of(profile::Profile empty)
{
    const std::scoped_lock lock{m_mutex};
    auto& function = m_functions[empty.key];
    if (!function) function = std::make_shared<FunctionProfile>(std::move(empty));
    return function;
}

profile::Profile ProfileKeeper::joined(const FunctionProfile& function)
{
    profile::Profile own = function.own();
    auto stored = m_library.find(own.key);
    if (!stored) m_fault("read", stored.error());
    const bool is_hit = stored && *stored;
    ++(is_hit ? m_hits : m_misses);
    store::FunctionUsage usage;
    ++(is_hit ? usage.hits : usage.misses);
    usage.events =
        is_hit ? store::one_event(store::EventKind::hit, "read")
               : store::one_event(store::EventKind::miss, stored ? "no_profile" : to_string(stored.error().code));
    m_store.add_usage_soon(store::ArtifactKind::profiles, usage);
    if (!stored || !*stored) return own;
    auto both = profile::join(std::move(**stored), own);
    return both ? std::move(*both) : own;
}

std::vector<profile::Profile> ProfileKeeper::counted()
{
    std::vector<std::shared_ptr<FunctionProfile>> functions;
    {
        const std::scoped_lock lock{m_mutex};
        for (const auto& [key, function] : m_functions)
            if (function->is_worth_a_file()) functions.push_back(function);
    }
    std::vector<profile::Profile> profiles;
    for (const auto& function : functions) profiles.push_back(joined(*function));
    return profiles;
}

/// Whether this process is a fork of the process that started the thread.
bool ProfileKeeper::is_forked() const noexcept { return m_process != 0 && m_process != ::getpid(); }

void ProfileKeeper::start_writer()
{
    if (m_is_ending || m_writer.joinable()) return;
    m_process = ::getpid();
    m_writer = std::jthread([this](const std::stop_token& stop) { run(stop); });
    m_at_exit.emplace([this] { end(); });
}

void ProfileKeeper::expect() noexcept
try {
    if (!writes() || is_forked()) return;
    const std::scoped_lock lock{m_mutex};
    start_writer();
} catch (const std::exception& error) { // the next note() tries again
    log().debug("the thread that writes shapes is not started yet: {}", error.what());
}

void ProfileKeeper::note(const std::shared_ptr<FunctionProfile>& function) noexcept
try {
    if (!writes() || is_forked()) return;
    const std::scoped_lock lock{m_mutex};
    m_noted.insert(function);
    start_writer();
    m_wake.notify_one();
} catch (const std::exception& error) {
    log().debug("the shapes of a function's calls are not stored: {}", error.what());
}

bool ProfileKeeper::is_ending()
{
    const std::scoped_lock lock{m_mutex};
    return m_is_ending;
}

bool ProfileKeeper::write(FunctionProfile& function) noexcept
try {
    const auto news = function.take_new_counts();
    if (!news) return true;
    const auto merged = m_library.merge(*news);
    if (merged && *merged) {
        if ((*merged)->replaced) m_fault("read", *(*merged)->replaced);
        if (!is_ending()) m_store.make_room(); // otherwise the next process makes room: an exit must not wait for that
        return true;
    }
    function.put_back();
    // The folder was deleted, or no longer belongs to the library. The user did that, so it is not a fault.
    if (!merged && merged.error().code == ErrorCode::permission_denied)
        log().debug("the shapes of a function's calls are not stored: {}", merged.error().message);
    else if (!merged)
        m_fault("write", merged.error());
    return !merged.has_value(); // after a failure the profile is written again with the next news
} catch (const std::exception& error) {
    log().debug("the shapes of a function's calls are not stored: {}", error.what());
    return true;
}

std::size_t ProfileKeeper::write_all() noexcept
{
    const std::scoped_lock files{m_file_mutex};
    std::set<std::shared_ptr<FunctionProfile>> noted;
    {
        const std::scoped_lock lock{m_mutex};
        noted.swap(m_noted);
    }
    std::erase_if(noted, [this](const auto& function) { return write(*function); });
    const std::scoped_lock lock{m_mutex};
    const std::size_t left = noted.size();
    m_noted.merge(noted);
    return left;
}

void ProfileKeeper::run(const std::stop_token& stop) noexcept
{
    auto pause = k_collect;
    while (true) {
        std::unique_lock lock{m_mutex};
        if (!m_wake.wait(lock, stop, [this] { return !m_noted.empty(); })) return;
        m_wake.wait_for(lock, stop, pause, [] { return false; });
        if (stop.stop_requested()) return; // end() writes the rest
        lock.unlock();
        pause = write_all() == 0 ? k_collect : k_when_busy;
    }
}

void ProfileKeeper::end() noexcept
{
    const std::scoped_lock one_at_a_time{m_end_mutex};
    if (is_forked()) { // the parent writes the counts
        if (m_writer.joinable()) m_writer.detach();
        return;
    }
    {
        const std::scoped_lock lock{m_mutex};
        m_is_ending = true;
    }
    m_writer = {}; // ends the thread
    auto patience = k_patience;
    while (write_all() != 0 && patience.count() > 0) {
        patience -= k_when_busy;
        system_clock().sleep_for(k_when_busy);
    }
}

} // namespace warmgraph
