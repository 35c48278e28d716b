// The misses of a function: written at the miss, also by a store that was opened to be read, and never for a hit.
#include <chrono>
#include <exception>

#include "commit.hpp"
#include "disk.hpp"
#include "mark.hpp"
#include "miss_file.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

Result<Misses> read_misses(const Disk& disk, const FunctionKey& function)
{
    const auto file = disk.read(disk.layout.function(function) / k_miss_file, k_miss_file_cap);
    if (!file) return std::unexpected(file.error());
    if (!*file) return Misses{};
    if (!(*file)->content) return std::unexpected((*file)->content.error());
    return parse_misses(*(*file)->content);
}

/// Others hold it for well under a millisecond; who dies or sleeps with it costs a few, and this miss its line.
Result<std::unique_ptr<FileLock>> lock_usage(const Disk& disk, const Path& folder)
{
    constexpr int k_tries = 5;
    auto lock = disk.files.try_lock(folder / k_usage_lock, disk.modes.file);
    for (int again = 1; again < k_tries && lock && !*lock; ++again) {
        disk.clock.sleep_for(std::chrono::milliseconds(1));
        lock = disk.files.try_lock(folder / k_usage_lock, disk.modes.file);
    }
    if (lock && !*lock) return fail(ErrorCode::io_failed, "another process writes there");
    return lock;
}

Result<void> write_miss(const Disk& disk, const FunctionKey& function, const Miss& miss, std::string_view call)
{
    if (!has_mark(disk.files, disk.layout.root())) return fail(ErrorCode::not_found, "the cache folder has no mark");
    const Path folder = disk.layout.function(function);
    if (auto made = disk.files.make_directories(folder, disk.modes.folder); !made) return made;
    const auto lock = lock_usage(disk, folder);
    if (!lock) return std::unexpected(lock.error());
    auto misses = read_misses(disk, function);
    if (!misses) { // whatever it is, it says nothing, and is replaced
        log().warn("{}/{} is ignored: {}", function.function, k_miss_file, misses.error().message);
        misses = Misses{};
    }
    add_miss(misses->list, miss);
    misses->newest_call = call;
    const std::string lines = to_miss_lines(*misses);
    return commit(disk.files, folder / k_miss_file, as_bytes(lines), disk.modes, Durability::unsynced);
}

} // namespace

void LocalStore::note_miss(const FunctionKey& function, const Miss& miss, std::string_view call) noexcept
{
    try {
        if (!why_read_only().empty() || !check_key(function)) return;
        if (const auto done = write_miss(m_impl->disk, function, miss, call); !done)
            log().debug("a miss of {} is not kept: {}", function.function, done.error().message);
    } catch (const std::exception& error) {
        log().debug("a miss of a function is not kept: {}", error.what());
    }
}

Result<Misses> LocalStore::misses(const FunctionKey& function) const
{
    if (auto ok = check_key(function); !ok) return std::unexpected(ok.error());
    auto misses = read_misses(m_impl->disk, function);
    if (!misses) return within(std::string(k_miss_file), misses.error());
    return misses;
}

} // namespace warmgraph::store
