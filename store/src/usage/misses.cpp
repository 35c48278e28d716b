#include "usage/misses.hpp"

#include <chrono>

#include "tiers/local/commit.hpp"
#include "tiers/local/folder_tag.hpp"
#include "usage/miss_file.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

/// Writers hold the lock for well under a millisecond. If one dies or sleeps with it, this call waits a few
/// milliseconds, and the miss is lost.
Result<std::unique_ptr<FileLock>> lock_usage(const Disk& disk, const Path& folder)
{
    constexpr int k_tries = 5;
    auto lock = disk.files.try_lock(folder / k_usage_lock, disk.modes.file);
    for (int again = 1; again < k_tries && lock && !*lock; ++again) {
        disk.clock.sleep_for(std::chrono::milliseconds(1));
        lock = disk.files.try_lock(folder / k_usage_lock, disk.modes.file);
    }
    if (lock && !*lock) return fail(ErrorCode::io_failed, "another process is writing there");
    return lock;
}

} // namespace

Result<Misses> read_misses(const Disk& disk, const Path& folder)
{
    const auto file = disk.read(folder / k_miss_file, {k_miss_file_cap});
    if (!file) return std::unexpected(file.error());
    if (!*file) return Misses{};
    if (!(*file)->bytes) return std::unexpected((*file)->bytes.error());
    return parse_misses(*(*file)->bytes);
}

Result<void> write_miss(const Disk& disk, const Path& folder, const Miss& miss, std::string_view call)
{
    if (!has_tag(disk.files)) return fail(ErrorCode::not_found, "the cache folder has no CACHEDIR.TAG");
    // The root is also checked if it was opened for reading: the user root must not write into another user's folder.
    const auto root = disk.files.info("");
    if (!root) return std::unexpected(root.error());
    if (!*root) return fail(ErrorCode::not_found, "the cache folder was removed");
    if (auto ok = disk.trust.admits_writing(**root, disk.layout.root()); !ok) return ok;
    if (auto made = disk.files.make_directories(folder, disk.modes.folder); !made) return made;
    const auto lock = lock_usage(disk, folder);
    if (!lock) return std::unexpected(lock.error());
    auto misses = read_misses(disk, folder);
    if (!misses) { // the damaged file has no use, so it is replaced
        log().warn("{}/{} is ignored: {}", folder.string(), k_miss_file, misses.error().message);
        misses = Misses{};
    }
    add_miss(misses->list, miss);
    if (!call.empty()) misses->newest_call = call;
    const std::string lines = to_miss_lines(*misses);
    return commit(disk.files, folder / k_miss_file, as_bytes(lines), disk.modes, Durability::unsynced);
}

} // namespace warmgraph::store
