#include "temporary.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::store {
namespace {

constexpr std::size_t k_uuid_bytes = 36;

/// "<host>.<namespace>-<boot>": never changes in a process, nor in its forks.
const std::string& writer_place()
{
    // Never destroyed: threads may outlive main().
    static const std::string& k_place = *new std::string([] {
        std::string host = host_name();
        std::ranges::replace_if(host, [](char c) { return c == '/' || c <= ' ' || c > '~'; }, '_');
        struct stat status{};
        const auto space = ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : ino_t{0};
        return fmt::format("{}.{}-{}", host, space, boot_id());
    }());
    return k_place;
}

bool is_alive(std::string_view digits)
{
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
    if (error != std::errc{} || end != digits.data() + digits.size() || pid <= 0) return false;
    return ::kill(pid, 0) == 0 || errno != ESRCH;
}

} // namespace

std::string temporary_name()
{
    return fmt::format("{}{}-{}-{}", k_temporary_prefix, writer_place(), ::getpid(), random_uuid());
}

bool is_abandoned(std::string_view name, std::chrono::system_clock::time_point modified,
                  std::chrono::system_clock::time_point now)
{
    if (now - modified > std::chrono::hours(24)) return true;
    const std::string here = fmt::format("{}{}-", k_temporary_prefix, writer_place());
    if (!name.starts_with(here) || name.size() <= here.size() + k_uuid_bytes) return false;
    return !is_alive(name.substr(here.size(), name.size() - here.size() - k_uuid_bytes - 1));
}

void remove_abandoned(FileSystem& files, Clock& clock, const Path& folder)
{
    const auto items = files.list(folder);
    if (!items) return;
    for (const DirectoryItem& item : *items) {
        if (!is_temporary(item.name)) continue;
        const auto info = files.info(folder / item.name);
        if (!info || !*info || !is_abandoned(item.name, (*info)->modified, clock.wall())) continue;
        if (const auto removed = files.remove(folder / item.name); !removed)
            log().debug("left-over stays: {}", removed.error().message);
    }
}

void remove_free_lock(FileSystem& files, Modes modes, const Path& path)
{
    // Removed while held: whoever waits with the old file open sees in try_lock that it is no longer the path's.
    const auto lock = files.try_lock(path, modes.file);
    if (!lock || !*lock) return;
    if (const auto removed = files.remove(path); !removed) log().debug("lock file stays: {}", removed.error().message);
}

} // namespace warmgraph::store
