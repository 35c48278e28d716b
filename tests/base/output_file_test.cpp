// Tests a file that a user names as an output: it is either written completely or not changed, and a device stays a
// device.
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect_error.hpp"
#include "temp_dir.hpp"
#include "warmgraph/base/output_file.hpp"

namespace warmgraph::test::output_file_test {
namespace {

namespace fs = std::filesystem;

class Outputs : public testing::Test {
protected:
    [[nodiscard]] fs::path at(const std::string& name) const { return m_dir.path() / name; }
    static Result<void> write(const fs::path& path, const std::string& text, mode_t mode = OutputFile::k_usual)
    {
        auto file = OutputFile::open(path, mode);
        if (!file) return std::unexpected(file.error());
        if (auto done = file->append(as_bytes(text)); !done) return done;
        return file->commit();
    }
    static std::string read(const fs::path& path)
    {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>{file}, {}};
    }
    [[nodiscard]] std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(m_dir.path()), {}); }
    static mode_t mode_of(const fs::path& path)
    {
        struct stat info{};
        ::stat(path.c_str(), &info);
        return info.st_mode & 0777U;
    }
    TempDir m_dir;
};

TEST_F(Outputs, AreWholeOrAsTheyWere)
{
    EXPECT_TRUE(succeeded(write(at("new"), "first")));
    EXPECT_EQ(read(at("new")), "first");
    {
        auto file = take(OutputFile::open(at("new"), OutputFile::k_usual));
        EXPECT_TRUE(succeeded(file.append(as_bytes("half"))));
        EXPECT_EQ(read(at("new")), "first") << "until it is committed";
    }
    EXPECT_EQ(read(at("new")), "first");
    EXPECT_EQ(files(), 1) << "nothing is left beside it";
}

TEST_F(Outputs, AreWrittenAtAnyPlace)
{
    auto file = take(OutputFile::open(at("file"), OutputFile::k_private));
    EXPECT_TRUE(succeeded(file.append(as_bytes("....body"))));
    EXPECT_TRUE(succeeded(file.write_at(0, as_bytes("head"))));
    EXPECT_TRUE(succeeded(file.append(as_bytes("end"))));
    EXPECT_TRUE(succeeded(file.commit()));
    EXPECT_EQ(read(at("file")), "headbodyend");
    EXPECT_EQ(mode_of(at("file")), 0600U);
}

TEST_F(Outputs, KeepTheModeOfWhatStoodThere)
{
    std::ofstream(at("file")) << "old";
    fs::permissions(at("file"), fs::perms{0640});
    EXPECT_TRUE(succeeded(write(at("file"), "new")));
    EXPECT_EQ(mode_of(at("file")), 0640U);
    EXPECT_TRUE(succeeded(write(at("file"), "secret", OutputFile::k_private)));
    EXPECT_EQ(mode_of(at("file")), 0600U);
}

TEST_F(Outputs, GoWhereALinkPoints)
{
    fs::create_directories(at("deep"));
    std::ofstream(at("deep/file")) << "old";
    fs::create_symlink("deep/file", at("link"));
    EXPECT_TRUE(succeeded(write(at("link"), "new")));
    EXPECT_TRUE(fs::is_symlink(at("link")));
    EXPECT_EQ(read(at("deep/file")), "new");
    fs::create_symlink("nowhere", at("dangling"));
    EXPECT_TRUE(failed_with(write(at("dangling"), "new"), ErrorCode::invalid_argument, "which does not exist"));
    fs::create_symlink("circle", at("circle"));
    EXPECT_FALSE(write(at("circle"), "new").has_value());
}

/// Promise H19: in a folder that other users may write, they may make a link or a file with the name that a program
/// uses.
TEST_F(Outputs, OfAProgramsOwnNameReplaceNothingButAFileOfThisUsers)
{
    const auto write_unnamed = [&](const std::string& name) -> Result<void> {
        auto file = OutputFile::open(at(name), OutputFile::k_usual, OutputFile::PathOrigin::by_program);
        if (!file) return std::unexpected(file.error());
        if (auto done = file->append(as_bytes("new")); !done) return done;
        return file->commit();
    };
    std::ofstream(at("precious")) << "old";
    fs::create_symlink("precious", at("link"));
    fs::create_symlink("nowhere", at("dangling"));
    ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
    fs::create_directories(at("folder"));
    for (const char* planted : {"link", "dangling", "pipe", "folder"})
        EXPECT_TRUE(
            failed_with(write_unnamed(planted), ErrorCode::invalid_argument, "not overwritten unless you name it"))
            << planted;
    EXPECT_EQ(read(at("precious")), "old");
    EXPECT_FALSE(fs::exists(at("nowhere")));
    if (::geteuid() == 0) {
        std::ofstream(at("theirs")) << "old";
        ASSERT_EQ(::chown(at("theirs").c_str(), 65534, 65534), 0);
        EXPECT_TRUE(failed_with(write_unnamed("theirs"), ErrorCode::invalid_argument, "file of another user"));
    }
    EXPECT_TRUE(succeeded(write_unnamed("precious")));
    EXPECT_TRUE(succeeded(write_unnamed("fresh")));
    EXPECT_EQ(read(at("precious")), "new");
}

TEST_F(Outputs, LeaveAPipeAPipe)
{
    ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
    std::string got;
    std::thread reader([&] { got = read(at("pipe")); });
    EXPECT_TRUE(succeeded(write(at("pipe"), "through")));
    reader.join();
    EXPECT_EQ(got, "through");
    EXPECT_TRUE(fs::is_fifo(at("pipe")));
}

TEST_F(Outputs, SayWhatADeviceDoesNotTake)
{
    EXPECT_TRUE(succeeded(write("/dev/null", "text")));
    EXPECT_TRUE(failed_with(write("/dev/full", "text"), ErrorCode::no_space, "cannot write '/dev/full'"));
    EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Outputs, AreNoFolders)
{
    EXPECT_TRUE(failed_with(write(m_dir.path(), "text"), ErrorCode::invalid_argument, "it is a folder"));
    EXPECT_FALSE(write(at("none/file"), "text").has_value());
}

TEST_F(Outputs, MayBeStandardOutput)
{
    std::fflush(stdout);
    const int kept = ::dup(STDOUT_FILENO), file = ::open(at("out").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(file, STDOUT_FILENO);
    const auto done = write("-", "text");
    ::dup2(kept, STDOUT_FILENO);
    ::close(kept);
    ::close(file);
    EXPECT_TRUE(succeeded(done));
    EXPECT_EQ(read(at("out")), "text");
}

} // namespace
} // namespace warmgraph::test::output_file_test
