// Power cuts, clearing processes and dead writers during a commit. Also, how the store recognises that a file was
// replaced.
#include <cstdio>
#include <functional>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child_process.hpp"
#include "store_fixture.hpp"

namespace {

struct Step {
    std::string what; ///< "sync" or "rename"
    std::string path; ///< the file that is synced, or the new name
};
std::vector<Step>* s_steps = nullptr; // not null while a test records steps

void note(const char* what, const char* path)
{
    if (s_steps != nullptr) s_steps->push_back({what, path});
}

std::string path_of(int file)
{
    char path[4096] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    return ::readlink(link.c_str(), path, sizeof path - 1) > 0 ? path : "?";
}

} // namespace

// Replaces fsync of the C library: the library's calls come to this function of the test program.
extern "C" int fsync(int file)
{
    note("sync", path_of(file).c_str());
    return static_cast<int>(::syscall(SYS_fsync, file));
}

extern "C" int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept
{
    const std::string path = path_of(to_folder) + "/" + to;
    note("rename", path.c_str());
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
}

namespace warmgraph::test::commit_test {
namespace {

class Commit : public StoreTest {
protected:
    template <class Work>
    std::vector<Step> steps_of(const Work& work)
    {
        std::vector<Step> steps;
        s_steps = &steps;
        work();
        s_steps = nullptr;
        return steps;
    }
    /// Expects that the file is synced before it gets its name, and that its folder is synced afterwards.
    static void expect_durable(const std::vector<Step>& steps, const fs::path& path)
    {
        const auto named = std::ranges::find_if(
            steps, [&](const Step& step) { return step.what == "rename" && step.path == path.string(); });
        ASSERT_NE(named, steps.end());
        const auto is_sync_of = [&](const Step& step, const std::function<bool(const fs::path&)>& is_it) {
            return step.what == "sync" && is_it(step.path);
        };
        EXPECT_TRUE(std::any_of(steps.begin(), named, [&](const Step& step) {
            return is_sync_of(step, [&](const fs::path& synced) {
                return synced.parent_path() == path.parent_path() && synced.filename().string().starts_with(".tmp-");
            });
        })) << "its bytes";
        EXPECT_TRUE(std::any_of(named, steps.end(), [&](const Step& step) {
            return is_sync_of(step, [&](const fs::path& synced) { return synced == path.parent_path(); });
        })) << "its name";
    }
    Entry m_entry = make_entry(k_decode);
    fs::path m_path = path_of(m_entry.header.key);
};

TEST_F(Commit, OfAnEntryOutlastsAPowerCut)
{
    const auto store = open();
    const auto steps = steps_of([&] { ASSERT_TRUE(succeeded(store->publish(m_entry))); });
    expect_durable(steps, m_path);
    for (fs::path made = folder(); made != m_root; made = made.parent_path())
        EXPECT_TRUE(std::ranges::any_of(
            steps, [&](const Step& step) { return step.what == "sync" && step.path == made.parent_path().string(); }))
            << made << " was made here";
}

TEST_F(Commit, OfAnImageOutlastsAPowerCut)
{
    const auto store = open();
    const Bytes image = image_of("code");
    expect_durable(steps_of([&] { ASSERT_TRUE(store->publish_image(image).value()); }), path_of(image));
}

/// Removes a folder just before a file is written into it, as `warmgraph clear` may do. This happens a given number of
/// times.
class ClearedFiles final : public ForwardingFileSystem {
public:
    explicit ClearedFiles(Path root) : m_root(std::move(root)) {}
    int times = 0;

private:
    Result<void> write_new_in(FileSystem& inner, const Path& path, ByteView bytes, std::uint32_t mode,
                              Durability durability) override
    {
        clear(path);
        return inner.write_new(path, bytes, mode, durability);
    }
    Result<std::unique_ptr<FileLock>> try_lock_in(FileSystem& inner, const Path& path, std::uint32_t mode) override
    {
        clear(path);
        return inner.try_lock(path, mode);
    }
    void clear(const Path& path)
    {
        if (times > 0 && --times >= 0) fs::remove_all((m_root / path).parent_path());
    }

    Path m_root; ///< the root, because paths in an opened folder are relative to it
};

TEST_F(Commit, IsTriedAgainWhereItsFolderIsGone)
{
    ClearedFiles files(m_root);
    const auto store = open({}, files);
    for (int times = 1; times <= 3; ++times) {
        files.times = times;
        EXPECT_TRUE(succeeded(store->publish(m_entry))) << times;
        EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry) << times;
        files.times = times;
        EXPECT_TRUE(store->publish_image(image_of(std::to_string(times))).value()) << times;
    }
    files.times = 3;
    const auto lock = take(store->try_record_lock(m_entry.header.key));
    EXPECT_NE(lock, nullptr);
}

TEST_F(Commit, IsGivenUpWhereItsFolderIsGoneAgainAndAgain)
{
    ClearedFiles files(m_root);
    const auto store = open({}, files);
    files.times = 1000;
    EXPECT_TRUE(failed_with(store->publish(m_entry), ErrorCode::not_found, "publish decode"));
}

/// Removes the whole cache just before a folder is made in it, as `rm -rf` may do. This happens a given number of
/// times.
class DeletedFiles final : public ForwardingFileSystem {
public:
    explicit DeletedFiles(Path root) : m_root(std::move(root)) {}
    int times = 0;

private:
    Result<void> make_directories_in(FileSystem& inner, const Path& path, std::uint32_t mode) override
    {
        if (!path.empty() && path.is_relative() && times > 0 && --times >= 0) fs::remove_all(m_root);
        return inner.make_directories(path, mode);
    }

    Path m_root;
};

TEST_F(Commit, BeginsAgainWhereTheCacheIsDeletedMeanwhile)
{
    DeletedFiles files(m_root);
    const auto store = open({}, files);
    for (int times = 1; times <= 2; ++times) {
        files.times = times;
        EXPECT_TRUE(succeeded(store->publish(m_entry))) << times;
        EXPECT_TRUE(fs::exists(m_root / "CACHEDIR.TAG")) << times;
        EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry) << times;
    }
    files.times = 2;
    EXPECT_NE(store->try_record_lock(m_entry.header.key).value(), nullptr);
    EXPECT_TRUE(fs::exists(m_root / "CACHEDIR.TAG"));
}

/// Writing must not make the folder again: it would have no tag, and no process may use a folder without a tag.
TEST_F(Commit, OfCountersAndMissesDoesNotMakeACacheThatIsDeletedMeanwhile)
{
    DeletedFiles files(m_root);
    const auto store = open({}, files);
    const FunctionKey function = m_entry.header.key.function;
    files.times = 1;
    store->add_usage(function, {.hits = 1});
    EXPECT_EQ(files.times, 0);
    EXPECT_FALSE(fs::exists(m_root));
    ASSERT_TRUE(succeeded(store->publish(m_entry)));
    files.times = 1;
    store->note_miss(function, {}, "call");
    EXPECT_EQ(files.times, 0);
    EXPECT_FALSE(fs::exists(m_root));
}

TEST_F(Commit, OfAnImageSweepsUpBehindADeadWriter)
{
    const Bytes image = image_of("code");
    const auto left = [&] {
        auto names = names_in(path_of(image).parent_path());
        std::erase_if(names, [](const std::string& name) { return !name.starts_with(".tmp-"); });
        return names;
    };
    const auto living = open(); // opened first, because opening the folder also removes the files of dead writers
    ChildProcess child([&] {
        FaultyFileSystem files;
        const auto store = open({}, files);
        for (std::uint64_t nth = 1; nth < 20 && left().empty(); ++nth) {
            files.fail_at(nth, ErrorCode::io_failed, FaultyFileSystem::Lasts::for_ever,
                          FaultyFileSystem::Leaves::half_a_file);
            static_cast<void>(store->publish_image(image));
        }
        return left().empty() ? 1 : 0;
    });
    ASSERT_EQ(child.wait(), 0);
    ASSERT_EQ(left().size(), 1U);
    EXPECT_TRUE(living->publish_image(image).value());
    EXPECT_TRUE(left().empty());
}

/// Runs a function after a file was read and before the file is set aside.
class InterruptedFiles final : public ForwardingFileSystem {
public:
    std::function<void()> after_read; ///< the function that runs after an entry was read

private:
    Result<std::optional<FileContent>> read_in(FileSystem& inner, const Path& path, std::uint64_t limit) override
    {
        auto content = inner.read(path, limit);
        if (after_read && path.extension() == ".wg") std::exchange(after_read, nullptr)();
        return content;
    }
};

class Replaced : public Commit {
protected:
    Replaced()
    {
        EXPECT_TRUE(succeeded(m_store->publish(m_entry)));
        m_good = snapshot(m_root).at(m_path.lexically_relative(m_root).string());
        flip(m_path, 300);
    }
    void set_times(const fs::path& path, const timespec& time)
    {
        const timespec times[2] = {time, time};
        ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    }
    void expect_left_in_place()
    {
        EXPECT_TRUE(failed_with(m_store->entry(m_entry.header.key), ErrorCode::corrupt));
        EXPECT_TRUE(quarantined().empty());
        EXPECT_EQ(m_store->entry(m_entry.header.key).value(), m_entry);
    }
    InterruptedFiles m_files;
    std::unique_ptr<LocalStore> m_store = open({}, m_files);
    std::string m_good;
};

TEST_F(Replaced, ByAFileOfTheSameTimeAndSizeItIsNotSetAside)
{
    m_files.after_read = [&] {
        struct stat before{};
        ASSERT_EQ(::stat(m_path.c_str(), &before), 0);
        const fs::path other = m_root / "other";
        write(other, m_good);
        set_times(other, before.st_mtim);
        fs::rename(other, m_path);
    };
    expect_left_in_place();
}

TEST_F(Replaced, InItsOwnPlaceItIsNotSetAside)
{
    set_times(m_path, {1'700'000'000, 0});
    m_files.after_read = [&] {
        std::fstream file(m_path, std::ios::in | std::ios::out | std::ios::binary); // keeps the same inode
        file << m_good;
    };
    expect_left_in_place();
}

} // namespace
} // namespace warmgraph::test::commit_test
