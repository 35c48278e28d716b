// Promise D5 with a real program: where its cache should be, there may be anything. The result is right, and the
// program does not hang and ends normally. If the cache is readable, it is read.
#include <cerrno>
#include <functional>

#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "child_process.hpp"
#include "lacking.hpp"
#include "victim_fixture.hpp"

namespace warmgraph::test::odd_folders_test {
namespace {

constexpr unsigned k_user = 65534, k_other_user = 12345;

void make_pipe(const fs::path& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path; }

void make_socket(const fs::path& path)
{
    const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // The path of a socket has at most 107 bytes. So the socket is made in a folder with a short path, and then moved.
    const TempDir short_folder;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/s", short_folder.path().c_str());
    ASSERT_EQ(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(made);
    fs::rename(short_folder.path() / "s", path);
}

class OddFolders : public VictimTest {
protected:
    void set_mode(const fs::path& path, mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0) << path; }
    void give_to(unsigned user)
    {
        for (const auto& item : fs::recursive_directory_iterator(m_place))
            ASSERT_EQ(::lchown(item.path().c_str(), user, user), 0);
    }
    /// Changes modes so that the program's user can reach the folder.
    void open_the_way()
    {
        set_mode(m_dir.path(), 0755);
        set_mode(m_place, 0755);
    }
    /// Expects that the result is right, nothing is cached, the output has the reason, and the folder is not changed.
    void expect_off(const std::string& why, unsigned user = 0)
    {
        const auto before = snapshot(m_place);
        const ProcessResult ended = run("run", {}, user);
        EXPECT_EQ(ended.status, 0) << ended.errors;
        EXPECT_TRUE(ended.says("eager eager")) << ended.output;
        EXPECT_TRUE(ended.says(why)) << ended.output;
        EXPECT_EQ(snapshot(m_place), before);
    }
    void expect_hits(const ProcessResult& ended)
    {
        EXPECT_EQ(ended.status, 0) << ended.errors;
        EXPECT_TRUE(ended.says("replayed replayed")) << ended.output << ended.errors;
    }
    std::vector<fs::path> files() const
    {
        std::vector<fs::path> found;
        for (const auto& item : fs::recursive_directory_iterator(m_root))
            if (item.is_regular_file()) found.push_back(item.path());
        return found;
    }
};

TEST_F(OddFolders, ThatOthersMayWriteAreNotUsed)
{
    ASSERT_EQ(run().status, 0);
    for (const mode_t mode : {0777U, 0770U, 0702U}) {
        set_mode(m_root, mode);
        expect_off("chmod g");
    }
    set_mode(m_root, 01777); // all users may write, as in /tmp
    expect_off("give a folder of its own below it");
    set_mode(m_root, 0700);
    expect_hits(run());
}

TEST_F(OddFolders, OfAnotherUserAreNotUsedAndThoseOfRootAreReadByAll)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give folders away (root)");
    open_the_way();
    ASSERT_EQ(run().status, 0);
    for (const auto& item : fs::recursive_directory_iterator(m_place))
        set_mode(item.path(), item.is_directory() ? 0755 : 0644);
    const auto before = snapshot(m_place);
    expect_hits(run("run", {}, k_user)); // as from a container image that root built
    EXPECT_EQ(snapshot(m_place), before);
    give_to(k_other_user);
    expect_off("belongs to user 12345");
    expect_off("belongs to user 12345", k_user);
}

TEST_F(OddFolders, WithoutAnyRightAreNotUsed)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give folders away (root)");
    open_the_way();
    ASSERT_EQ(run().status, 0);
    give_to(k_user);
    set_mode(m_root, 0);
    expect_off("Permission denied", k_user);
}

TEST_F(OddFolders, ThatMayOnlyBeReadGiveTheirHits)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give folders away (root)");
    open_the_way();
    ASSERT_EQ(run().status, 0);
    give_to(k_user);
    for (const auto& item : fs::recursive_directory_iterator(m_place))
        set_mode(item.path(), item.is_directory() ? 0555 : 0444);
    const auto before = snapshot(m_place);
    expect_hits(run("run", {}, k_user));
    EXPECT_EQ(snapshot(m_place), before);
    // The entry is missing and is not recorded; nothing else happens.
    EXPECT_TRUE(run("evict", {}, k_user).says("eager eager"));
    EXPECT_EQ(snapshot(m_place), before);
}

TEST_F(OddFolders, OnADiskThatTakesNothingGiveTheirHits)
{
    ASSERT_EQ(run().status, 0);
    for (const int error : {EROFS, ENOSPC, EDQUOT, EACCES}) {
        const auto before = snapshot(m_place);
        expect_hits(run("run", {.does = "fail", .nth = 1, .for_ever = true, .error = error}));
        EXPECT_GT(m_report->injected, 0U);
        EXPECT_EQ(snapshot(m_place), before) << ::strerror(error);
    }
}

TEST_F(OddFolders, OnAReadOnlyFileSystemGiveTheirHits)
{
    ASSERT_EQ(run().status, 0);
    const auto before = snapshot(m_place);
    ChildProcess child([&] { // the child has its own mounts
        if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
        const char* const path = m_place.c_str();
        if (::mount(path, path, nullptr, MS_BIND, nullptr) != 0) return 77;
        if (::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) return 77;
        const ProcessResult ended = run();
        return ended.status == 0 && ended.says("replayed replayed") ? 0 : 1;
    });
    const int status = child.wait();
    if (status == 77) WARMGRAPH_SKIP_LACKING("the right to mount (root, outside a plain container)");
    EXPECT_EQ(status, 0) << text_of(m_dir.path() / "out") << text_of(m_dir.path() / "err");
    EXPECT_EQ(snapshot(m_place), before);
}

TEST_F(OddFolders, ThatAreNoneAreNotUsedAndStay)
{
    make_pipe(m_root);
    expect_off("");
    fs::remove(m_root);
    make_socket(m_root);
    expect_off("");
    fs::remove(m_root);
    write(m_root, "");
    expect_off("is a file, expected a folder");
    fs::remove(m_root);
    fs::create_symlink("nowhere", m_root);
    expect_off("");
    fs::remove(m_root);
    fs::create_symlink(m_root, m_root); // makes a link that leads to itself
    EXPECT_TRUE(run().says("eager eager"));
    EXPECT_TRUE(fs::is_symlink(fs::symlink_status(m_root)));
}

TEST_F(OddFolders, ThatLinksLeadToAreUsed)
{
    fs::create_directory(m_place / "disk");
    set_mode(m_place / "disk", 0700);
    fs::create_directory_symlink("disk", m_root);
    EXPECT_TRUE(run().says("recorded"));
    expect_hits(run());
    EXPECT_TRUE(fs::exists(m_place / "disk" / "CACHEDIR.TAG"));
}

TEST_F(OddFolders, WithNamesOfAllLengthsAreUsedOrSaidToBeTooLong)
{
    m_root = m_place / std::string(255, 'n');
    EXPECT_TRUE(run().says("recorded"));
    write(m_root / std::string(255, 'o'), "somebody's own");
    write(m_root / "images" / std::string(255, 'o'), "somebody's own");
    expect_hits(run());
    EXPECT_TRUE(fs::exists(m_root / std::string(255, 'o')));
    m_root = m_place / std::string(256, 'n');
    expect_off("too long");
}

/// Replaces each file of a warm cache in turn by something that is not a regular file. The program must not hang, and
/// its result must be right. If the cache may repair the file, the next run finds it repaired.
TEST_F(OddFolders, WithOddThingsInTheirFilesPlacesAreUsedAllTheSame)
{
    const std::vector<std::pair<const char*, std::function<void(const fs::path&)>>> things{
        {"0 bytes", [](const fs::path& path) { write(path, ""); }},
        {"a folder", [](const fs::path& path) { fs::create_directory(path); }},
        {"a full folder", [](const fs::path& path) { write(path / "file", "somebody's own"); }},
        {"a dangling link", [](const fs::path& path) { fs::create_symlink("nowhere", path); }},
        {"a link to a device", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
        {"a pipe", make_pipe},
        {"a socket", make_socket}};
    keep_warm();
    start_warm();
    std::vector<fs::path> names;
    for (const fs::path& file : files()) names.push_back(file.lexically_relative(m_root));
    ASSERT_GE(names.size(), 4U) << "an entry, an image, the mark, counters";
    for (const auto& [what, put] : things) {
        for (const fs::path& name : names) {
            SCOPED_TRACE(fmt::format("{} in the place of {}", what, name.string()));
            start_warm();
            fs::remove(m_root / name);
            put(m_root / name);
            const ProcessResult ended = run();
            EXPECT_EQ(ended.status, 0) << ended.errors;
            if (name == "CACHEDIR.TAG") { // the folder has no tag, so it may belong to other programs
                EXPECT_TRUE(ended.says("eager eager")) << ended.output;
                continue;
            }
            EXPECT_FALSE(ended.says("eager")) << ended.output << ended.errors;
            expect_hits(run());
        }
    }
}

TEST_F(OddFolders, ThatAreRemovedMeanwhileAreMadeAgain)
{
    for (const bool is_warm : {false, true}) {
        if (!is_warm) start_anew();
        const ProcessResult ended = run("removed");
        EXPECT_EQ(ended.status, 0) << ended.errors;
        EXPECT_FALSE(ended.says("eager")) << ended.output;
        expect_usable();
    }
}

} // namespace
} // namespace warmgraph::test::odd_folders_test
