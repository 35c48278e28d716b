// Tests a folder that is opened once: everything in it is reached through the descriptor, and links are not followed.
#include <fstream>
#include <functional>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child_process.hpp"
#include "expect_error.hpp"
#include "lacking.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/file_system.hpp"

namespace {

/// Runs just after a folder was made: at this moment another user of the machine may act.
std::function<void(const std::string& name)> s_after_mkdir;

} // namespace

// Hides the C library's function: the library's calls come to this function of the program.
extern "C" int mkdirat(int folder, const char* name, mode_t mode) noexcept
{
    const auto done = static_cast<int>(::syscall(SYS_mkdirat, folder, name, mode));
    if (done == 0 && s_after_mkdir) s_after_mkdir(name);
    return done;
}

namespace warmgraph::test::folder_test {
namespace {

namespace fs = std::filesystem;

class OpenedFolder : public testing::Test {
protected:
    OpenedFolder() { fs::create_directories(m_root); }
    ~OpenedFolder() override { s_after_mkdir = nullptr; }
    std::unique_ptr<FileSystem> open(Admission admits = {})
    {
        return take(posix_file_system().open_folder(m_root, std::move(admits)));
    }
    static mode_t mode_of(const fs::path& path)
    {
        struct stat status{};
        EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
        return status.st_mode & 07777;
    }
    static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

    TempDir m_dir;
    fs::path m_root = m_dir.path() / "root";
};

TEST_F(OpenedFolder, DoesAllThatAFileSystemDoes)
{
    const auto files = open();
    ASSERT_TRUE(succeeded(files->make_directories("a/b", 0750)));
    EXPECT_EQ(mode_of(m_root / "a"), 0750U);
    ASSERT_TRUE(succeeded(files->write_new("a/b/file", as_bytes("text"), 0640)));
    EXPECT_EQ(as_text((*files->read("a/b/file", 100))->bytes), "text");
    EXPECT_EQ((*files->read("a/b/file", 100))->info.mode, 0640U);
    ASSERT_TRUE(succeeded(files->rename("a/b/file", "a/other")));
    EXPECT_TRUE(succeeded(files->touch("a/other")));
    EXPECT_EQ((*files->info("a/other"))->size, 4U);
    EXPECT_EQ(files->list("a").value().size(), 2U);
    EXPECT_EQ(files->list("").value().size(), 1U);
    EXPECT_TRUE(files->list("none").value().empty());
    EXPECT_FALSE(files->info("none/below").value());
    EXPECT_FALSE(files->read("none/below", 1).value());
    EXPECT_NE(files->try_lock("a/lock", 0600).value(), nullptr);
    EXPECT_TRUE(succeeded(files->remove("a/b")));
    EXPECT_FALSE(fs::exists(m_root / "a" / "b"));
    EXPECT_GT(files->disk_bytes("").value(), 1U << 20);
    const auto below = take(files->open_folder("a", {}));
    EXPECT_EQ(below->list("").value().size(), 2U);
}

TEST_F(OpenedFolder, LeadsNowhereElse)
{
    const auto files = open();
    for (const char* path : {"..", "../x", "a/../../x", "/etc/passwd", "./x", ""}) {
        EXPECT_FALSE(files->read(path, 10)) << path;
        EXPECT_FALSE(files->write_new(path, as_bytes("x"), 0600)) << path;
        EXPECT_FALSE(files->remove(path)) << path;
    }
    EXPECT_FALSE(fs::exists(m_dir.path() / "x"));
}

TEST_F(OpenedFolder, FollowsNoLink)
{
    const fs::path elsewhere = m_dir.path() / "elsewhere";
    fs::create_directory(elsewhere);
    write(elsewhere / "file", "text");
    fs::create_directory_symlink(elsewhere, m_root / "link");
    fs::create_symlink(elsewhere / "file", m_root / "file");
    const auto files = open();
    EXPECT_FALSE(files->read("link/file", 10));
    EXPECT_FALSE(files->read("file", 10));
    EXPECT_FALSE(files->write_new("link/new", as_bytes("x"), 0600));
    EXPECT_FALSE(files->make_directories("link/below", 0700));
    EXPECT_FALSE(files->try_lock("link/lock", 0600));
    EXPECT_FALSE(files->list("link"));
    EXPECT_FALSE(files->remove("link/file"));
    EXPECT_FALSE(files->touch("link/file"));
    EXPECT_FALSE(files->open_folder("link", {}));
    EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere), {}), 1);
}

TEST_F(OpenedFolder, AsksAboutEachFolderOnTheWay)
{
    fs::create_directories(m_root / "a" / "b");
    std::vector<std::string> asked;
    fs::path refused;
    const auto files = open([&](const FileInfo& info, const fs::path& path) -> Result<void> {
        EXPECT_EQ(info.type, FileType::directory);
        asked.push_back(path.string());
        if (path == refused) return fail(ErrorCode::permission_denied, "no");
        return {};
    });
    EXPECT_EQ(asked, std::vector{m_root.string()});
    EXPECT_TRUE(succeeded(files->write_new("a/b/file", as_bytes("x"), 0600)));
    EXPECT_EQ(asked, (std::vector{m_root.string(), (m_root / "a").string(), (m_root / "a" / "b").string()}));
    refused = m_root / "a";
    for (const bool ok : {files->read("a/b/file", 1).has_value(), files->list("a").has_value(),
                          files->make_directories("a/c", 0700).has_value(), files->remove("a/b/file").has_value()})
        EXPECT_FALSE(ok);
    refused = m_root;
    EXPECT_FALSE(posix_file_system().open_folder(m_root, [&](const FileInfo&, const fs::path&) -> Result<void> {
        return fail(ErrorCode::permission_denied, "no");
    }));
}

TEST_F(OpenedFolder, IsMadeAgainWhereItWasRemoved)
{
    const auto files = open();
    fs::remove_all(m_root);
    EXPECT_FALSE(files->info("").value());
    EXPECT_FALSE(files->write_new("file", as_bytes("x"), 0600));
    EXPECT_TRUE(succeeded(files->make_directories("", 0700)));
    EXPECT_TRUE(succeeded(files->write_new("file", as_bytes("x"), 0600)));
    EXPECT_TRUE(fs::exists(m_root / "file"));
}

TEST_F(OpenedFolder, IsNotMadeAgainForWhatLiesBelow)
{
    const auto files = open();
    fs::remove_all(m_root);
    EXPECT_TRUE(failed_with(files->make_directories("a/b", 0700), ErrorCode::not_found, "a"));
    EXPECT_FALSE(fs::exists(m_root));
}

/// Between mkdir() and the setting of the mode, another user replaces the folder by a link to a folder of this user.
TEST_F(OpenedFolder, ALinkThatIsSwappedInAfterMkdirIsNotTouched)
{
    const fs::path victim = m_dir.path() / "victim";
    fs::create_directory(victim);
    ASSERT_EQ(::chmod(victim.c_str(), 0750), 0);
    const auto files = open();
    s_after_mkdir = [&](const std::string& name) {
        for (const fs::path& made : {m_root / name, m_dir.path() / name})
            if (fs::remove(made)) fs::create_directory_symlink(victim, made);
    };
    EXPECT_TRUE(failed_with(files->make_directories("new", 02770), ErrorCode::permission_denied, "a link"));
    EXPECT_TRUE(failed_with(posix_file_system().make_directories(m_dir.path() / "other", 02770),
                            ErrorCode::permission_denied, "a link"));
    EXPECT_EQ(mode_of(victim), 0750U);
    EXPECT_TRUE(fs::is_empty(victim));
}

TEST_F(OpenedFolder, AnotherUsersFolderThatIsSwappedInAfterMkdirIsNotTouched)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give a folder to another user (root)");
    const auto files = open();
    s_after_mkdir = [&](const std::string& name) {
        ASSERT_EQ(::chown((m_root / name).c_str(), 65534, 65534), 0);
        ASSERT_EQ(::chmod((m_root / name).c_str(), 0711), 0);
    };
    EXPECT_TRUE(failed_with(files->make_directories("new", 02770), ErrorCode::permission_denied, "another folder"));
    EXPECT_EQ(mode_of(m_root / "new"), 0711U);
}

TEST_F(OpenedFolder, LocksBytesForOneProcessAtATime)
{
    const auto files = open();
    EXPECT_TRUE(failed_with(files->open_byte_locks("locks", std::nullopt), ErrorCode::not_found));
    const auto mine = files->open_byte_locks("locks", 0600).value();
    const auto reader = files->open_byte_locks("locks", std::nullopt).value();
    EXPECT_EQ(mode_of(m_root / "locks"), 0600U);
    const auto taken = [](ByteLocks& locks, std::uint64_t byte, LockKind kind) {
        return locks.try_lock(byte, 1, kind).value();
    };
    EXPECT_TRUE(taken(*mine, 7, LockKind::shared));
    EXPECT_TRUE(taken(*reader, 7, LockKind::shared));
    EXPECT_FALSE(taken(*mine, 7, LockKind::exclusive)) << "the reader holds it";
    EXPECT_TRUE(taken(*mine, 8, LockKind::exclusive)) << "another byte";
    EXPECT_FALSE(taken(*reader, 8, LockKind::shared));
    EXPECT_FALSE(reader->try_lock(0, 16, LockKind::shared).value()) << "8 is among them";
    EXPECT_TRUE(reader->try_lock(9, 16, LockKind::shared).value());
    reader->unlock(0, 100);
    EXPECT_TRUE(taken(*mine, 7, LockKind::exclusive)) << "a lock that is held already gets the kind";
    ChildProcess dying([&] {
        const auto theirs = files->open_byte_locks("locks", 0600).value();
        return taken(*theirs, 9, LockKind::exclusive) && !taken(*theirs, 8, LockKind::shared) ? 0 : 1;
    });
    EXPECT_EQ(dying.wait(), 0);
    EXPECT_TRUE(taken(*mine, 9, LockKind::exclusive)) << "the dead hold nothing";
}

} // namespace
} // namespace warmgraph::test::folder_test
