#include <exception>

#include <unistd.h>

#include "commit.hpp"
#include "disk.hpp"
#include "mark.hpp"
#include "usage_file.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

FunctionUsage read_usage(const Disk& disk, const FunctionKey& function)
{
    const auto file = disk.read(disk.layout.function(function) / k_usage_file, k_usage_cap);
    if (!file || !*file || !(*file)->content) return {};
    return parse_usage(*(*file)->content).value_or(FunctionUsage{});
}

enum class Outcome : std::uint8_t { written, busy, failed };

Result<Outcome> try_write_usage(const Disk& disk, const FunctionKey& function, const FunctionUsage& more)
try {
    const Path folder = disk.layout.function(function);
    // A cache that somebody deleted meanwhile is not made again for counters.
    if (!has_mark(disk.files, disk.layout.root())) return fail(ErrorCode::not_found, "the cache folder has no mark");
    if (auto made = disk.files.make_directories(folder, disk.modes.folder); !made) return std::unexpected(made.error());
    const auto lock = disk.files.try_lock(folder / k_usage_lock, disk.modes.file);
    if (!lock && lock.error().code == ErrorCode::not_found) return Outcome::busy; // `warmgraph clear` is at it
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return Outcome::busy;
    FunctionUsage usage = read_usage(disk, function);
    merge(usage, more);
    const std::string text = to_usage_json(usage);
    auto written = commit(disk.files, folder / k_usage_file, as_bytes(text), disk.modes, Durability::unsynced);
    if (!written) return std::unexpected(written.error());
    return Outcome::written;
} catch (const std::exception& error) { // what is counted must not get lost with it
    return fail(ErrorCode::io_failed, "{}", error.what());
}

/// Adds `more` to the file; `busy` when somebody else is at it just now.
Outcome write_usage(const Disk& disk, const FunctionKey& function, const FunctionUsage& more)
{
    const auto done = try_write_usage(disk, function, more);
    if (!done) log().debug("usage of {} not written: {}", function.function, done.error().message);
    return done.value_or(Outcome::failed);
}

} // namespace

std::size_t LocalStore::Impl::write_pending()
{
    const std::scoped_lock files(usage_file_mutex);
    std::map<FunctionKey, FunctionUsage> taken;
    {
        const std::scoped_lock guard(usage_mutex);
        taken.swap(pending);
    }
    std::size_t busy = 0;
    std::erase_if(taken, [&](const auto& item) {
        const Outcome outcome = write_usage(disk, item.first, item.second);
        busy += outcome == Outcome::busy ? 1 : 0;
        return outcome == Outcome::written;
    });
    const std::scoped_lock guard(usage_mutex);
    for (auto& [function, left] : taken) {
        FunctionUsage& noted_since = pending[function];
        merge(left, noted_since);
        noted_since = std::move(left);
    }
    return busy;
}

void LocalStore::Impl::note_usage(const FunctionKey& function, const FunctionUsage& more)
{
    FunctionUsage stamped = more;
    if (stamped.last_used.empty() && (more.hits > 0 || more.recordings > 0))
        stamped.last_used = to_iso8601(disk.clock.wall());
    merge(pending[function], stamped);
}

void LocalStore::add_usage(const FunctionKey& function, const FunctionUsage& more) noexcept
{
    try {
        if (!m_impl->disk.writable() || !check_key(function)) return;
        {
            const std::scoped_lock guard(m_impl->usage_mutex);
            m_impl->note_usage(function, more);
        }
        m_impl->write_pending();
    } catch (const std::exception& error) {
        log().debug("usage of a function not noted: {}", error.what());
    }
}

void LocalStore::add_usage_soon(const FunctionKey& function, const FunctionUsage& more) noexcept
{
    try {
        if (!m_impl->disk.writable() || !check_key(function)) return;
        const std::scoped_lock guard(m_impl->usage_mutex);
        m_impl->note_usage(function, more);
        m_impl->write_soon = true;
        if (!m_impl->is_exiting && !m_impl->usage_writer.joinable()) m_impl->start_usage_writer();
        m_impl->usage_noted.notify_one();
    } catch (const std::exception& error) {
        log().debug("usage of a function not noted: {}", error.what());
    }
}

void LocalStore::Impl::start_usage_writer()
{
    usage_writer = std::jthread([this](const std::stop_token& stop) { run_usage_writer(stop); });
    end_usage_writer.emplace([this] {
        {
            const std::scoped_lock guard(usage_mutex);
            is_exiting = true;
        }
        end_usage();
    });
}

void LocalStore::Impl::end_usage() noexcept
{
    // Others hold the lock for well under a millisecond, unless their disk is slow: 1.3 s in all.
    constexpr int k_tries = 50;
    try {
        usage_writer = {}; // ends it
        for (int i = 0; i < k_tries && write_pending() > 0; ++i) disk.clock.sleep_for(std::chrono::milliseconds(i + 1));
    } catch (const std::exception& error) {
        log().debug("usage not written: {}", error.what());
    }
}

void LocalStore::Impl::run_usage_writer(const std::stop_token& stop) noexcept
{
    // Others hold the lock for well under a millisecond, unless their disk is slow.
    constexpr std::chrono::milliseconds k_pause_when_busy(10);
    while (!stop.stop_requested()) {
        {
            std::unique_lock guard(usage_mutex);
            if (!usage_noted.wait(guard, stop, [this] { return write_soon; })) return; // the destructor writes the rest
            write_soon = false;
        }
        try {
            if (write_pending() == 0) continue;
            std::unique_lock guard(usage_mutex);
            write_soon = true;
            usage_noted.wait_for(guard, stop, k_pause_when_busy, [] { return false; });
        } catch (const std::exception& error) {
            log().debug("usage not written: {}", error.what());
        }
    }
}

FunctionUsage LocalStore::usage(const FunctionKey& function) const
{
    if (!check_key(function)) return {};
    const std::scoped_lock files(m_impl->usage_file_mutex);
    FunctionUsage usage = read_usage(m_impl->disk, function);
    const std::scoped_lock guard(m_impl->usage_mutex);
    if (const auto own = m_impl->pending.find(function); own != m_impl->pending.end()) merge(usage, own->second);
    return usage;
}

LocalStore::~LocalStore()
{
    // A forked child has no such thread to end, and what is pending is its parent's to write.
    if (::getpid() != m_impl->process) {
        static_cast<void>(m_impl.release());
        return;
    }
    m_impl->end_usage_writer.reset();
    m_impl->end_usage();
}

} // namespace warmgraph::store
