// Tests the real FileSystem with unusual files and folders.
#include <fstream>

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "child_process.hpp"
#include "expect_error.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/file_system.hpp"

namespace warmgraph::test::file_system_test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_plenty = 1 << 20;

class PosixFiles : public testing::Test {
protected:
    void write(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }
    fs::path at(const std::string& name) const { return m_dir.path() / name; }

    TempDir m_dir;
    FileSystem& m_files = posix_file_system();
};

TEST_F(PosixFiles, ReadsAFileUpToTheLimit)
{
    write(at("file"), "0123456789");
    EXPECT_EQ(as_text((*m_files.read(at("file"), k_plenty))->bytes), "0123456789");
    EXPECT_EQ(as_text((*m_files.read(at("file"), 4))->bytes), "0123");
    EXPECT_EQ((*m_files.read(at("file"), 0))->bytes.size(), 0U);
}

TEST_F(PosixFiles, AMissingFileIsNoFailure)
{
    EXPECT_FALSE(m_files.read(at("none"), k_plenty).value());
    EXPECT_FALSE(m_files.info(at("none")).value());
    EXPECT_TRUE(m_files.list(at("none")).value().empty());
    EXPECT_TRUE(succeeded(m_files.remove(at("none"))));
    EXPECT_TRUE(failed_with(m_files.touch(at("none")), ErrorCode::not_found, "none"));
}

TEST_F(PosixFiles, RefusesLinksPipesSocketsAndFoldersWithoutHanging)
{
    write(at("file"), "secret");
    fs::create_symlink(at("file"), at("link"));
    fs::create_symlink(at("nowhere"), at("dangling"));
    ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
    fs::create_directory(at("folder"));
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    at("socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    for (const char* name : {"link", "dangling", "pipe", "folder", "socket"}) {
        EXPECT_TRUE(failed_with(m_files.read(at(name), k_plenty), ErrorCode::io_failed, name)) << name;
    }
    EXPECT_TRUE(failed_with(m_files.read("/dev/zero", k_plenty), ErrorCode::io_failed, "regular file"));
    EXPECT_TRUE(failed_with(m_files.read(at("file") / "below", k_plenty), ErrorCode::io_failed));
    ::close(socket);
}

TEST_F(PosixFiles, WritesOnlyNewFilesWithExactlyTheModeGiven)
{
    const mode_t old = ::umask(077);
    EXPECT_TRUE(succeeded(m_files.write_new(at("shared"), as_bytes("text"), 0660)));
    ::umask(old);
    EXPECT_EQ(as_text((*m_files.read(at("shared"), k_plenty))->bytes), "text");
    const FileInfo info = **m_files.info(at("shared"));
    EXPECT_EQ(info.mode, 0660U);
    EXPECT_EQ(info.size, 4U);
    EXPECT_EQ(info.owner, ::geteuid());
    EXPECT_EQ(info.type, FileType::regular);

    EXPECT_TRUE(failed_with(m_files.write_new(at("shared"), as_bytes("other"), 0600), ErrorCode::io_failed, "exists"));
    EXPECT_EQ(as_text((*m_files.read(at("shared"), k_plenty))->bytes), "text");
    EXPECT_TRUE(succeeded(m_files.write_new(at("quick"), as_bytes("text"), 0600, Durability::unsynced)));
}

TEST_F(PosixFiles, DoesNotWriteThroughALink)
{
    fs::create_symlink(at("target"), at("link"));
    EXPECT_FALSE(m_files.write_new(at("link"), as_bytes("text"), 0600));
    EXPECT_FALSE(fs::exists(at("target")));
}

/// A batch system may limit the size of files. A write beyond the limit raises SIGXFSZ, and the library must not let
/// this signal end the process.
TEST_F(PosixFiles, AWriteThatFailsHalfwayLeavesNothing)
{
    const std::string big(100'000, 'x');
    ChildProcess child([&] {
        const rlimit limit{50'000, 50'000};
        if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
        const auto done = m_files.write_new(at("big"), as_bytes(big), 0600);
        sigset_t pending;
        if (::sigpending(&pending) != 0 || ::sigismember(&pending, SIGXFSZ) != 0) return 3;
        return !done && done.error().code == ErrorCode::io_failed ? 0 : 1;
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_FALSE(fs::exists(at("big"))) << "a part of the file was left behind";
}

TEST_F(PosixFiles, RenamesOverAFileAndSaysWhenItCannot)
{
    write(at("from"), "new");
    write(at("to"), "old");
    EXPECT_TRUE(succeeded(m_files.rename(at("from"), at("to"))));
    EXPECT_EQ(as_text((*m_files.read(at("to"), k_plenty))->bytes), "new");
    EXPECT_FALSE(fs::exists(at("from")));
    EXPECT_TRUE(failed_with(m_files.rename(at("from"), at("to")), ErrorCode::not_found, "from"));
    EXPECT_TRUE(succeeded(m_files.rename(at("to"), at("from"), Durability::unsynced)));
}

TEST_F(PosixFiles, RemovesFilesAndEmptyFoldersOnly)
{
    fs::create_directories(at("full/below"));
    EXPECT_TRUE(failed_with(m_files.remove(at("full")), ErrorCode::io_failed, "not empty"));
    EXPECT_TRUE(succeeded(m_files.remove(at("full/below"))));
    EXPECT_TRUE(succeeded(m_files.remove(at("full"))));
    EXPECT_FALSE(fs::exists(at("full")));
}

TEST_F(PosixFiles, MakesFoldersWithTheirParentsAndMode)
{
    const mode_t old = ::umask(027);
    EXPECT_TRUE(succeeded(m_files.make_directories(at("a/b/c"), 02770)));
    ::umask(old);
    for (const char* name : {"a", "a/b", "a/b/c"}) EXPECT_EQ((*m_files.info(at(name)))->mode, 02770U) << name;
    EXPECT_TRUE(succeeded(m_files.make_directories(at("a/b/c"), 0700)));
    EXPECT_EQ((*m_files.info(at("a/b/c")))->mode, 02770U) << "a folder that is there keeps its mode";

    write(at("file"), "");
    EXPECT_TRUE(failed_with(m_files.make_directories(at("file"), 0700), ErrorCode::io_failed, "Not a directory"));
    EXPECT_FALSE(m_files.make_directories(at("file/below"), 0700));
    fs::create_symlink(at("nowhere"), at("dangling"));
    EXPECT_FALSE(m_files.make_directories(at("dangling"), 0700));
}

TEST_F(PosixFiles, ListsByNameWithTypesAndDoesNotFollowLinks)
{
    fs::create_directory(at("b"));
    write(at("c"), "");
    fs::create_symlink(at("b"), at("a"));
    ASSERT_EQ(::mkfifo(at("d").c_str(), 0600), 0);
    const auto items = m_files.list(m_dir.path()).value();
    ASSERT_EQ(items.size(), 4U);
    EXPECT_EQ(items[0].name, "a");
    EXPECT_EQ(items[0].type, FileType::other);
    EXPECT_EQ(items[1].type, FileType::directory);
    EXPECT_EQ(items[2].type, FileType::regular);
    EXPECT_EQ(items[3].type, FileType::other);
    EXPECT_EQ((*m_files.info(at("a")))->type, FileType::other);
    EXPECT_TRUE(failed_with(m_files.list(at("c")), ErrorCode::io_failed));
}

TEST_F(PosixFiles, TouchSetsTheTimeToNow)
{
    write(at("file"), "");
    fs::last_write_time(at("file"), fs::file_time_type::clock::now() - std::chrono::hours(48));
    const auto before = (*m_files.info(at("file")))->modified;
    EXPECT_LT(before, std::chrono::system_clock::now() - std::chrono::hours(47));
    EXPECT_TRUE(succeeded(m_files.touch(at("file"))));
    EXPECT_GT((*m_files.info(at("file")))->modified, std::chrono::system_clock::now() - std::chrono::hours(1));
}

TEST_F(PosixFiles, WithoutRightsItIsPermissionDenied)
{
    write(at("file"), "text");
    ASSERT_EQ(::chmod(at("file").c_str(), 0), 0);
    ASSERT_EQ(::chmod(m_dir.path().c_str(), 0555), 0);
    ChildProcess child([&] {
        if (::geteuid() == 0 && ::seteuid(65534) != 0) return 2;
        const auto denied = [](const auto& result) {
            return !result && result.error().code == ErrorCode::permission_denied;
        };
        return denied(m_files.read(at("file"), k_plenty)) &&
                       denied(m_files.write_new(at("new"), as_bytes("x"), 0600)) &&
                       denied(m_files.make_directories(at("folder"), 0700)) &&
                       denied(m_files.try_lock(at("lock"), 0600)) && denied(m_files.remove(at("file")))
                   ? 0
                   : 1;
    });
    EXPECT_EQ(child.wait(), 0);
    ASSERT_EQ(::chmod(m_dir.path().c_str(), 0755), 0);
}

TEST_F(PosixFiles, TooLongANameIsAFailureThatNamesIt)
{
    const std::string name(300, 'n');
    EXPECT_TRUE(failed_with(m_files.write_new(at(name), as_bytes("x"), 0600), ErrorCode::io_failed, "too long"));
    EXPECT_TRUE(failed_with(m_files.read(at(name), k_plenty), ErrorCode::io_failed, "too long"));
}

} // namespace
} // namespace warmgraph::test::file_system_test
