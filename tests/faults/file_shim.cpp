// Preloaded into a program, this library counts the program's file operations below a folder. After the Nth operation
// it kills the program; or it lets this operation fail, or also all later ones. The environment says which
// (Plan::read).
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "shim_report.hpp"

namespace {

using warmgraph::test::ShimReport;
using PathText = std::array<char, 2 * PATH_MAX>;

enum class Kind : std::uint8_t { looks, opens, changes, writes };

struct Plan {
    std::string_view folder; ///< empty: the shim does nothing
    std::string_view does;   ///< "kill", "fail" or "short" (a write writes half); anything else: the shim only counts
    std::string_view counts; ///< which operations count: "all", "changes", "opens" or "writes"
    bool for_ever = false;
    int error = 0;
    std::uint64_t nth = 0;
    ShimReport* report = nullptr;

    static Plan read()
    {
        const auto text = [](const char* name) {
            const char* const value = std::getenv(name);
            return std::string_view{value == nullptr ? "" : value};
        };
        Plan plan{text("SHIM_FOLDER"),
                  text("SHIM_DOES"),
                  text("SHIM_COUNTS"),
                  text("SHIM_LASTS") == "for_ever",
                  std::atoi(text("SHIM_ERRNO").data()),
                  std::strtoull(text("SHIM_NTH").data(), nullptr, 10)};
        const auto file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, text("SHIM_REPORT").data(), O_RDWR, 0));
        void* const shared =
            file < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(ShimReport), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file >= 0) ::syscall(SYS_close, file);
        if (shared == MAP_FAILED)
            plan.folder = {};
        else
            plan.report = static_cast<ShimReport*>(shared);
        return plan;
    }
    [[nodiscard]] bool counts_kind(Kind kind) const noexcept
    {
        if (counts == "all") return true;
        if (counts == "opens") return kind == Kind::opens;
        if (counts == "writes") return kind == Kind::writes;
        return kind == Kind::changes || kind == Kind::writes;
    }
};

const Plan& plan()
{
    static const Plan plan = Plan::read();
    return plan;
}

bool put_descriptor(PathText& path, int file)
{
    std::array<char, 64> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
    const ssize_t size = ::syscall(SYS_readlinkat, AT_FDCWD, link.data(), path.data(), PATH_MAX - 1);
    path[size > 0 ? static_cast<std::size_t>(size) : 0] = '\0';
    return size > 0;
}

PathText path_of(int file)
{
    PathText path{};
    put_descriptor(path, file);
    return path;
}

PathText path_at(int folder, const char* name)
{
    PathText path{};
    if (name[0] == '/') {
        std::snprintf(path.data(), path.size(), "%s", name);
    } else if (folder != AT_FDCWD && put_descriptor(path, folder)) {
        const std::size_t used = std::strlen(path.data());
        std::snprintf(path.data() + used, path.size() - used, "/%s", name);
    }
    return path;
}

bool is_below(const PathText& path)
{
    const std::string_view text{path.data()}, folder = plan().folder;
    return !folder.empty() && text.starts_with(folder) && (text.size() == folder.size() || text[folder.size()] == '/');
}

/// Counts an operation, and injects a fault if it is this operation's turn. `work(is_its_turn)` does the operation,
/// unless it must fail.
template <class Work>
long met(const char* name, const PathText& path, Kind kind, Work work)
{
    if (!is_below(path) || !plan().counts_kind(kind)) return work(false);
    const Plan& to_do = plan();
    const std::uint64_t number = ++to_do.report->operations;
    const bool is_its_turn = to_do.nth != 0 && (to_do.for_ever ? number >= to_do.nth : number == to_do.nth);
    if (!is_its_turn) return work(false);
    if (++to_do.report->injected == 1)
        std::snprintf(to_do.report->last, sizeof to_do.report->last, "%s %s", name, path.data());
    if (to_do.does == "kill") {
        work(true);
        ::syscall(SYS_kill, ::getpid(), SIGKILL);
    }
    if (to_do.does != "fail") return work(true);
    errno = to_do.error;
    return -1;
}

Kind kind_of_open(int flags) noexcept { return (flags & (O_CREAT | O_TRUNC)) != 0 ? Kind::changes : Kind::opens; }

long open_below(int folder, const char* name, int flags, mode_t mode)
{
    const Kind kind = plan().counts == "opens" ? Kind::opens : kind_of_open(flags);
    return met("openat", path_at(folder, name), kind,
               [&](bool) { return ::syscall(SYS_openat, folder, name, flags, mode); });
}

} // namespace

extern "C" {

int openat(int folder, const char* name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return static_cast<int>(open_below(folder, name, flags, mode));
}

int open(const char* name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return static_cast<int>(open_below(AT_FDCWD, name, flags, mode));
}

ssize_t write(int file, const void* bytes, size_t size)
{
    return met("write", path_of(file), Kind::writes, [&](bool is_its_turn) {
        return ::syscall(SYS_write, file, bytes, is_its_turn && size > 1 ? size / 2 : size);
    });
}

ssize_t read(int file, void* bytes, size_t size)
{
    return met("read", path_of(file), Kind::looks, [&](bool) { return ::syscall(SYS_read, file, bytes, size); });
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept
{
    return static_cast<int>(met("renameat", path_at(to_folder, to), Kind::changes,
                                [&](bool) { return ::syscall(SYS_renameat2, from_folder, from, to_folder, to, 0); }));
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept
{
    return static_cast<int>(met("linkat", path_at(to_folder, to), Kind::changes,
                                [&](bool) { return ::syscall(SYS_linkat, from_folder, from, to_folder, to, flags); }));
}

int unlinkat(int folder, const char* name, int flags) noexcept
{
    return static_cast<int>(met("unlinkat", path_at(folder, name), Kind::changes,
                                [&](bool) { return ::syscall(SYS_unlinkat, folder, name, flags); }));
}

int mkdirat(int folder, const char* name, mode_t mode) noexcept
{
    return static_cast<int>(met("mkdirat", path_at(folder, name), Kind::changes,
                                [&](bool) { return ::syscall(SYS_mkdirat, folder, name, mode); }));
}

int fsync(int file)
{
    return static_cast<int>(
        met("fsync", path_of(file), Kind::changes, [&](bool) { return ::syscall(SYS_fsync, file); }));
}

int fdatasync(int file)
{
    return static_cast<int>(
        met("fdatasync", path_of(file), Kind::changes, [&](bool) { return ::syscall(SYS_fdatasync, file); }));
}

int ftruncate(int file, off_t size) noexcept
{
    return static_cast<int>(
        met("ftruncate", path_of(file), Kind::changes, [&](bool) { return ::syscall(SYS_ftruncate, file, size); }));
}

int fchmod(int file, mode_t mode) noexcept
{
    return static_cast<int>(
        met("fchmod", path_of(file), Kind::changes, [&](bool) { return ::syscall(SYS_fchmod, file, mode); }));
}

int utimensat(int folder, const char* name, const timespec* times, int flags) noexcept
{
    return static_cast<int>(met("utimensat", path_at(folder, name), Kind::changes,
                                [&](bool) { return ::syscall(SYS_utimensat, folder, name, times, flags); }));
}

int fstatat(int folder, const char* name, struct stat* status, int flags) noexcept
{
    return static_cast<int>(met("fstatat", path_at(folder, name), Kind::looks,
                                [&](bool) { return ::syscall(SYS_newfstatat, folder, name, status, flags); }));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" // this function has the same name as a struct
int flock(int file, int operation) noexcept
{
    if ((operation & LOCK_UN) != 0) return static_cast<int>(::syscall(SYS_flock, file, operation));
    return static_cast<int>(
        met("flock", path_of(file), Kind::changes, [&](bool) { return ::syscall(SYS_flock, file, operation); }));
}

#pragma GCC diagnostic pop

int fcntl(int file, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    const long argument = va_arg(rest, long);
    va_end(rest);
    if (command != F_OFD_SETLK && command != F_SETLK)
        return static_cast<int>(::syscall(SYS_fcntl, file, command, argument));
    return static_cast<int>(met("fcntl lock", path_of(file), Kind::changes,
                                [&](bool) { return ::syscall(SYS_fcntl, file, command, argument); }));
}

/// Only files that were open for writing count. As on Linux, a close() that fails closes the file nevertheless.
int close(int file)
{
    const long flags = ::syscall(SYS_fcntl, file, F_GETFL, 0);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0)
        return static_cast<int>(::syscall(SYS_close, file));
    const PathText path = path_of(file);
    long closed = 0;
    const long result = met("close", path, Kind::changes, [&](bool) { return closed = ::syscall(SYS_close, file); });
    if (result < 0 && closed == 0) {
        const int error = errno;
        ::syscall(SYS_close, file);
        errno = error;
    }
    return static_cast<int>(result);
}

} // end of extern "C"
