#include "usage/usage.hpp"

#include <algorithm>
#include <exception>

#include "tiers/local/commit.hpp"
#include "tiers/local/folder_tag.hpp"
#include "usage/usage_file.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

FunctionUsage read_usage(const Disk& disk, const Path& folder)
{
    const auto file = disk.read(folder / k_usage_file, {k_usage_cap});
    if (!file || !*file || !(*file)->bytes) return {};
    FunctionUsage usage = parse_usage(*(*file)->bytes).value_or(FunctionUsage{});
    // A time in the future (from a wrong clock) would stay the last use for ever.
    if (usage.last_used > to_iso8601(disk.clock.wall() + std::chrono::minutes(10))) usage.last_used.clear();
    return usage;
}

enum class Outcome : std::uint8_t { written, busy, failed };

Result<Outcome> try_write_usage(const Disk& disk, const Path& folder, const FunctionUsage& more)
try {
    // Do not make a deleted cache again for counters.
    if (!has_tag(disk.files)) return fail(ErrorCode::not_found, "the cache folder has no CACHEDIR.TAG");
    if (auto made = disk.files.make_directories(folder, disk.modes.folder); !made) return std::unexpected(made.error());
    const auto lock = disk.files.try_lock(folder / k_usage_lock, disk.modes.file);
    // `warmgraph clear` is removing the folder.
    if (!lock && lock.error().code == ErrorCode::not_found) return Outcome::busy;
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return Outcome::busy;
    FunctionUsage usage = read_usage(disk, folder);
    merge(usage, more);
    usage.saved_ms = std::max(usage.saved_ms, 0.0); // a file's value is never negative
    const std::string text = to_usage_json(usage);
    auto written = commit(disk.files, folder / k_usage_file, as_bytes(text), disk.modes, Durability::unsynced);
    if (!written) return std::unexpected(written.error());
    return Outcome::written;
} catch (const std::exception& error) { // the counts must survive an exception
    return fail(ErrorCode::io_failed, "{}", error.what());
}

/// Adds `more` to the file; `busy` when another process is writing it.
Outcome write_usage(const Disk& disk, const Path& folder, const FunctionUsage& more)
{
    const auto done = try_write_usage(disk, folder, more);
    if (!done) log().debug("usage of {} not written: {}", folder.string(), done.error().message);
    return done.value_or(Outcome::failed);
}

} // namespace

std::size_t Usage::write_pending()
{
    const std::scoped_lock files(m_file_mutex);
    std::map<Path, FunctionUsage> taken;
    {
        const std::scoped_lock guard(m_mutex);
        taken.swap(m_pending);
    }
    std::size_t busy = 0;
    std::erase_if(taken, [&](const auto& item) {
        const Outcome outcome = write_usage(m_disk, item.first, item.second);
        busy += outcome == Outcome::busy ? 1 : 0;
        return outcome == Outcome::written;
    });
    const std::scoped_lock guard(m_mutex);
    for (auto& [folder, left] : taken) {
        FunctionUsage& noted_since = m_pending[folder];
        merge(left, noted_since);
        noted_since = std::move(left);
    }
    return busy;
}

void Usage::note(const Path& folder, const FunctionUsage& more)
{
    FunctionUsage stamped = more;
    if (stamped.last_used.empty() && (more.hits > 0 || more.recordings > 0))
        stamped.last_used = to_iso8601(m_disk.clock.wall());
    merge(m_pending[folder], stamped);
}

void Usage::add(const Path& folder, const FunctionUsage& more) noexcept
{
    try {
        if (!m_disk.writable()) return;
        {
            const std::scoped_lock guard(m_mutex);
            note(folder, more);
        }
        write_pending();
    } catch (const std::exception& error) {
        log().debug("usage not noted: {}", error.what());
    }
}

void Usage::add_soon(const Path& folder, const FunctionUsage& more) noexcept
{
    try {
        if (!m_disk.writable()) return;
        const std::scoped_lock guard(m_mutex);
        note(folder, more);
        m_write_soon = true;
        start_writer();
        m_noted.notify_one();
    } catch (const std::exception& error) {
        log().debug("usage not noted: {}", error.what());
    }
}

void Usage::expect() noexcept
try {
    if (!m_disk.writable()) return;
    const std::scoped_lock guard(m_mutex);
    start_writer();
} catch (const std::exception& error) { // add_soon tries again
    log().debug("the thread that writes usage is not started yet: {}", error.what());
}

void Usage::look_soon() noexcept
try {
    const std::scoped_lock guard(m_mutex);
    m_write_soon = true;
    start_writer();
    m_noted.notify_one();
} catch (const std::exception& error) {
    log().debug("the end of loads is not watched: {}", error.what());
}

void Usage::start_writer()
{
    if (m_is_exiting || m_writer.joinable()) return;
    m_writer = std::jthread([this](const std::stop_token& stop) { run_writer(stop); });
    m_end_writer.emplace([this] {
        {
            const std::scoped_lock guard(m_mutex);
            m_is_exiting = true;
        }
        end();
    });
}

void Usage::end() noexcept
{
    try {
        m_writer = {}; // ends the thread
        std::size_t busy = write_pending();
        for (std::chrono::milliseconds pause(1); busy > 0 && m_patience.count() > 0; ++pause) {
            pause = std::min(pause, m_patience);
            m_patience -= pause;
            m_disk.clock.sleep_for(pause);
            busy = write_pending();
        }
        if (busy > 0)
            log().debug("usage of {} folders is not written: another process holds their {}", busy, k_usage_lock);
    } catch (const std::exception& error) {
        log().debug("usage not noted: {}", error.what());
    }
}

void Usage::run_writer(const std::stop_token& stop) noexcept
{
    // Other processes hold the lock for well under a millisecond, unless their disk is slow.
    constexpr std::chrono::milliseconds k_pause_when_busy(10);
    constexpr std::chrono::milliseconds k_first_look(10), k_longest_pause(1000);
    auto pause = k_first_look;
    while (!stop.stop_requested()) {
        const bool looks_again = m_look && m_look();
        {
            const auto is_noted = [this] { return m_write_soon; };
            std::unique_lock guard(m_mutex);
            const bool noted =
                looks_again ? m_noted.wait_for(guard, stop, pause, is_noted) : m_noted.wait(guard, stop, is_noted);
            pause = looks_again && !noted ? std::min(2 * pause, k_longest_pause) : k_first_look;
            if (!noted) continue; // the thread shall stop (the destructor writes the counts), or it is time to look
            m_write_soon = false;
        }
        try {
            if (write_pending() == 0) continue;
            std::unique_lock guard(m_mutex);
            m_write_soon = true;
            m_noted.wait_for(guard, stop, k_pause_when_busy, [] { return false; });
        } catch (const std::exception& error) {
            log().debug("usage not noted: {}", error.what());
        }
    }
}

FunctionUsage Usage::of(const Path& folder)
{
    const std::scoped_lock files(m_file_mutex);
    FunctionUsage usage = read_usage(m_disk, folder);
    const std::scoped_lock guard(m_mutex);
    if (const auto own = m_pending.find(folder); own != m_pending.end()) merge(usage, own->second);
    return usage;
}

Usage::~Usage()
{
    m_end_writer.reset();
    end();
}

} // namespace warmgraph::store
