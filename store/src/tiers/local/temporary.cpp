#include "tiers/local/temporary.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tiers/local/own_names.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::store {
namespace {

bool is_number(std::string_view text) noexcept
{
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Cuts `end` and the dash before it from `text`. Returns false when they are not there.
bool cut(std::string_view& text, std::string_view end) noexcept
{
    if (text.size() <= end.size() || !text.ends_with(end) || text[text.size() - end.size() - 1] != '-') return false;
    text.remove_suffix(end.size() + 1);
    return true;
}

std::string_view last_bytes(std::string_view text, std::size_t count) noexcept
{
    return text.substr(text.size() - std::min(text.size(), count));
}

bool is_alive(std::string_view digits)
{
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
    if (error != std::errc{} || end != digits.data() + digits.size() || pid <= 0) return false;
    return ::kill(pid, 0) == 0 || errno != ESRCH;
}

/// Cuts a long host name and adds a digest, because some file systems (eCryptfs: 143 bytes) permit only short names.
std::string shortened(const std::string& host)
{
    constexpr std::size_t k_most = 16, k_digits = 8;
    if (host.size() <= k_most) return host;
    return host.substr(0, k_most - k_digits - 1) + "_" + to_hex(sha256(as_bytes(host))).substr(0, k_digits);
}

} // namespace

const std::string& writer_place()
{
    // Never destroyed: threads may run longer than main().
    static const std::string& k_place = *new std::string([] {
        std::string host = shortened(host_name());
        std::ranges::replace_if(host, [](char c) { return c == '/' || c <= ' ' || c > '~'; }, '_');
        struct stat status{};
        const auto space = ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : ino_t{0};
        return fmt::format("{}.{}-{}", host, space, boot_id());
    }());
    return k_place;
}

bool is_writer_place(std::string_view text) noexcept
{
    const auto boot = last_bytes(text, k_uuid_bytes);
    if (!(is_uuid(boot) && cut(text, boot)) && !cut(text, "unknown")) return false; // the forms that boot_id() gives
    const std::size_t dot = text.rfind('.');
    return dot != std::string_view::npos && dot > 0 && is_number(text.substr(dot + 1));
}

std::string temporary_name()
{
    return fmt::format("{}{}-{}-{}", k_temporary_prefix, writer_place(), ::getpid(), random_uuid());
}

bool is_temporary(std::string_view name) noexcept
{
    if (!name.starts_with(k_temporary_prefix)) return false;
    name.remove_prefix(k_temporary_prefix.size());
    if (const auto uuid = last_bytes(name, k_uuid_bytes); !is_uuid(uuid) || !cut(name, uuid)) return false;
    if (const auto pid = name.substr(name.rfind('-') + 1); !is_number(pid) || !cut(name, pid)) return false;
    return is_writer_place(name);
}

bool is_abandoned(std::string_view name, std::chrono::system_clock::time_point modified,
                  std::chrono::system_clock::time_point now)
{
    if (now - modified > std::chrono::hours(24)) return true;
    const std::string here = fmt::format("{}{}-", k_temporary_prefix, writer_place());
    if (!name.starts_with(here) || name.size() <= here.size() + k_uuid_bytes) return false;
    return !is_alive(name.substr(here.size(), name.size() - here.size() - k_uuid_bytes - 1));
}

std::uint64_t remove_abandoned(FileSystem& files, Clock& clock, const Path& folder)
{
    const auto items = files.list(folder);
    if (!items) return 0;
    std::uint64_t count = 0;
    for (const DirectoryItem& item : *items) {
        if (item.type != FileType::regular || !is_temporary(item.name)) continue;
        const auto info = files.info(folder / item.name);
        if (!info || !*info || !is_abandoned(item.name, (*info)->modified, clock.wall())) continue;
        if (const auto removed = files.remove(folder / item.name); !removed)
            log().debug("cannot remove a left-over file: {}", removed.error().message);
        else
            ++count;
    }
    return count;
}

bool remove_free_lock(FileSystem& files, Modes modes, const Path& path)
{
    // The file is removed while the lock is held: a process that has opened this file sees in try_lock that the path
    // now has another file or none.
    const auto lock = files.try_lock(path, modes.file);
    if (!lock || !*lock) return false;
    const auto removed = files.remove(path);
    if (!removed) log().debug("cannot remove a lock file: {}", removed.error().message);
    return removed.has_value();
}

} // namespace warmgraph::store
