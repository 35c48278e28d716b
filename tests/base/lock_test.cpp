// Tests advisory locks: only one thread or process has a lock, and it is released when its holder ends.
#include <atomic>
#include <cerrno>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child_process.hpp"
#include "expect_error.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/file_system.hpp"

namespace {

std::function<void()> s_before_flock; // runs once, before the next flock()
int s_flock_fails_with = 0;           // the errno with which flock() fails; 0: it works
bool s_refuses_modes = false;

} // namespace

// Hides the C library's function: the library's calls come to this function of the program.
extern "C" int flock(int file, int operation) noexcept
{
    if (s_before_flock && (operation & LOCK_EX) != 0) std::exchange(s_before_flock, nullptr)();
    if (s_flock_fails_with != 0) {
        errno = s_flock_fails_with;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_flock, file, operation));
}

extern "C" int fchmod(int file, mode_t mode) noexcept
{
    if (s_refuses_modes) {
        errno = EPERM;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_fchmod, file, mode));
}

namespace warmgraph::test::lock_test {
namespace {

namespace fs = std::filesystem;

class Lock : public testing::Test {
protected:
    std::unique_ptr<FileLock> try_lock() { return m_files.try_lock(m_path, 0600).value(); }

    TempDir m_dir;
    FileSystem& m_files = posix_file_system();
    fs::path m_path = m_dir.path() / "lock";
};

TEST_F(Lock, IsHeldByOneAtATimeWithinAProcess)
{
    auto first = try_lock();
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(try_lock(), nullptr);
    first.reset();
    EXPECT_NE(try_lock(), nullptr);
}

TEST_F(Lock, IsHeldByOneProcessAtATime)
{
    const auto mine = try_lock();
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(ChildProcess([&] { return try_lock() == nullptr ? 0 : 1; }).wait(), 0);
}

TEST_F(Lock, IsReleasedWhenItsHolderIsKilled)
{
    const Gate taken;
    const Gate never;
    ChildProcess child([&] {
        const auto lock = try_lock();
        if (lock == nullptr) return 1;
        taken.open();
        never.wait();
        return 0;
    });
    taken.wait();
    EXPECT_EQ(try_lock(), nullptr);
    ASSERT_EQ(::kill(child.pid(), SIGKILL), 0);
    EXPECT_EQ(child.wait(), 1000 + SIGKILL);
    EXPECT_NE(try_lock(), nullptr);
}

TEST_F(Lock, IsReleasedByItsHolderEvenWhileAForkedChildLives)
{
    auto mine = try_lock();
    ASSERT_NE(mine, nullptr);
    const Gate end;
    ChildProcess child([&] {
        end.wait();
        return 0;
    });
    mine.reset();
    EXPECT_NE(try_lock(), nullptr);
    end.open();
    EXPECT_EQ(child.wait(), 0);
}

TEST_F(Lock, IsNotReleasedByAForkedChildThatDropsIt)
{
    auto mine = try_lock();
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(ChildProcess([&] {
                  mine.reset();
                  return 0;
              }).wait(),
              0);
    EXPECT_EQ(try_lock(), nullptr);
}

TEST_F(Lock, OnARemovedFileLocksNobodyOut)
{
    const auto old = try_lock();
    ASSERT_NE(old, nullptr);
    fs::remove(m_path);
    const auto fresh = try_lock();
    EXPECT_NE(fresh, nullptr) << "the file is a new one";
    EXPECT_EQ(try_lock(), nullptr);
}

TEST_F(Lock, OnAFileThatIsRemovedBeforeItIsLockedIsTakenAnew)
{
    s_before_flock = [this] { fs::remove(m_path); }; // the holder removes its file, and then releases the lock
    const auto lock = try_lock();
    ASSERT_NE(lock, nullptr);
    EXPECT_TRUE(fs::exists(m_path));
    EXPECT_EQ(try_lock(), nullptr) << "the lock is on the file that is there";
}

TEST_F(Lock, OfAFileThatAnotherTookTheNameOfIsNotTaken)
{
    std::unique_ptr<FileLock> theirs;
    s_before_flock = [&] { // the holder removes the file; another process makes a new file and locks it
        fs::remove(m_path);
        theirs = try_lock();
    };
    EXPECT_EQ(try_lock(), nullptr);
    EXPECT_NE(theirs, nullptr);
}

/// After `ln secret lock`, the file with this name does not belong to the library.
TEST_F(Lock, OnAFileOfAnotherNameLeavesItAsItIs)
{
    const fs::path secret = m_dir.path() / "secret";
    const auto status_of = [](const fs::path& path) {
        struct stat status{};
        EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
        return status;
    };
    const auto take = [&](bool locks_bytes, std::uint32_t mode) {
        return locks_bytes ? m_files.open_byte_locks(m_path, mode).has_value()
                           : m_files.try_lock(m_path, mode).value() != nullptr;
    };
    for (const bool locks_bytes : {false, true}) {
        for (const mode_t its : {0640U, 0666U, 0400U}) {
            std::ofstream(secret) << "secret";
            ASSERT_EQ(::chmod(secret.c_str(), its), 0);
            fs::create_hard_link(secret, m_path);
            EXPECT_TRUE(take(locks_bytes, 0600));
            const struct stat after = status_of(secret);
            EXPECT_EQ(after.st_mode & 07777, its);
            EXPECT_EQ(after.st_size, 6);
            EXPECT_NE(status_of(m_path).st_ino, after.st_ino) << "the lock has a file of its own";
            EXPECT_EQ(status_of(m_path).st_mode & 07777, 0600U);
            fs::remove(m_path);
            fs::remove(secret);
        }
        if (::geteuid() != 0) continue;
        ASSERT_EQ(::chown(m_dir.path().c_str(), 0, 4242), 0);
        std::ofstream(secret) << "secret";
        ASSERT_EQ(::chmod(secret.c_str(), 0660), 0);
        ASSERT_EQ(::chown(secret.c_str(), 0, 4343), 0);
        fs::create_hard_link(secret, m_path);
        EXPECT_TRUE(take(locks_bytes, 0660));
        EXPECT_EQ(status_of(secret).st_gid, 4343U);
        EXPECT_EQ(status_of(m_path).st_gid, 4242U);
        fs::remove(m_path);
        fs::remove(secret);
        ASSERT_EQ(::chown(m_dir.path().c_str(), 0, ::getegid()), 0);
    }
}

/// After `cp -al cache backup`, the file has two names but belongs to the library, and its lock may be held.
TEST_F(Lock, OnAFileWithABackupOfTheSameModeIsHeldByOne)
{
    const auto mine = try_lock();
    ASSERT_NE(mine, nullptr);
    fs::create_hard_link(m_path, m_dir.path() / "backup");
    EXPECT_EQ(try_lock(), nullptr);
}

// Holders remove the file before they release the lock. A thread that still has the old file open must not believe that
// it has the lock.
TEST_F(Lock, StaysExclusiveWhenHoldersRemoveTheFile)
{
    constexpr int k_threads = 4;
    constexpr int k_rounds = 500;
    std::atomic<int> inside = 0;
    std::atomic<int> overlaps = 0;
    std::atomic<int> entered = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < k_threads; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < k_rounds; ++i) {
                    const auto lock = m_files.try_lock(m_path, 0600);
                    if (!lock || !*lock) continue;
                    if (++inside != 1) ++overlaps;
                    ++entered;
                    --inside;
                    static_cast<void>(m_files.remove(m_path));
                }
            });
        }
    }
    EXPECT_EQ(overlaps, 0);
    EXPECT_GT(entered, 0);
}

/// NFS without lockd, Lustre without its lock option, and FUSE have no locks.
TEST_F(Lock, IsGivenToEverybodyByAFileSystemWithoutLocks)
{
    for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
        s_flock_fails_with = error;
        EXPECT_TRUE(try_lock() && try_lock()) << error;
    }
    s_flock_fails_with = EIO;
    EXPECT_TRUE(failed_with(m_files.try_lock(m_path, 0600), ErrorCode::io_failed, "cannot lock"));
    s_flock_fails_with = 0;
}

/// On a network share, the mount options may set the modes of all files, so setting a mode fails.
TEST_F(Lock, WhatHasItsModeIsNotGivenItAgain)
{
    s_refuses_modes = true;
    EXPECT_TRUE(try_lock());
    EXPECT_TRUE(succeeded(m_files.open_byte_locks(m_dir.path() / "bytes", 0600)));
    EXPECT_TRUE(succeeded(m_files.write_new(m_dir.path() / "file", {}, 0600, Durability::synced)));
    EXPECT_TRUE(succeeded(m_files.make_directories(m_dir.path() / "folder", 0700)));
    const auto refused = m_files.write_new(m_dir.path() / "for all", {}, 0666, Durability::synced);
    s_refuses_modes = false;
    EXPECT_TRUE(failed_with(refused, ErrorCode::permission_denied, "cannot set the mode of"));
}

/// Text that a program prints must not go into a file that the library has open.
TEST_F(Lock, LiesAboveTheStandardStreamsThatAProgramClosed)
{
    ChildProcess child([&] {
        for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
        const auto lock = m_files.try_lock(m_path, 0600);
        const auto bytes = m_files.open_byte_locks(m_dir.path() / "bytes", 0600);
        const auto folder = m_files.open_folder(m_dir.path(), {});
        if (!lock || !*lock || !bytes || !folder) return 2;
        for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            if (::write(stream, "printed", 7) != -1 || errno != EBADF) return 1;
        return 0;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(fs::file_size(m_path), 0U);
    EXPECT_EQ(fs::file_size(m_dir.path() / "bytes"), 0U);
}

TEST_F(Lock, RefusesFoldersLinksAndPipes)
{
    fs::create_directory(m_dir.path() / "folder");
    fs::create_symlink(m_path, m_dir.path() / "link");
    ASSERT_EQ(::mkfifo((m_dir.path() / "pipe").c_str(), 0600), 0);
    for (const char* name : {"folder", "link", "pipe"}) {
        EXPECT_TRUE(failed_with(m_files.try_lock(m_dir.path() / name, 0600), ErrorCode::io_failed, name)) << name;
    }
    EXPECT_TRUE(failed_with(m_files.try_lock(m_dir.path() / "none" / "lock", 0600), ErrorCode::not_found));
}

} // namespace
} // namespace warmgraph::test::lock_test
