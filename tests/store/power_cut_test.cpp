// Promise D3: power cuts. The test logs the store's writes. Then it builds and opens each folder that a power cut could
// leave. A cut may come after each operation; data that is not synced may be lost, torn, or written out of order. This
// follows POSIX's promises for fsync: a file's bytes are safe after the file was synced, and its name after its folder
// was synced.
#include <cstdarg>
#include <functional>
#include <random>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "random_graph.hpp"
#include "store_fixture.hpp"

namespace {

enum class OperationKind : std::uint8_t { create, make_folder, write, rename, unlink, sync, returned };

struct Operation {
    OperationKind what;
    std::string path;
    std::string to{};    ///< the new name in a rename
    std::string bytes{}; ///< the bytes that a write writes
};

struct Log {
    std::string below; ///< only paths below this folder are logged
    std::vector<Operation> operations{};
};
Log* s_power_log = nullptr; // not null while a test logs

std::string logged_path_of(int file)
{
    char path[4096] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    return ::readlink(link.c_str(), path, sizeof path - 1) > 0 ? path : "";
}

std::string logged_path_at(int folder, const char* name)
{
    return name[0] == '/' || folder == AT_FDCWD ? name : logged_path_of(folder) + "/" + name;
}

void log_operation(Operation operation)
{
    if (s_power_log != nullptr && operation.path.starts_with(s_power_log->below))
        s_power_log->operations.push_back(std::move(operation));
}

} // namespace

// Hides the C library's function: the library's calls come to this function of the program.
extern "C" int openat(int folder, const char* name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    const bool creates = (flags & O_CREAT) != 0 && ::syscall(SYS_faccessat, folder, name, F_OK) != 0;
    const auto opened = static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode));
    if (opened >= 0 && creates) log_operation({OperationKind::create, logged_path_at(folder, name)});
    return opened;
}

extern "C" ssize_t write(int file, const void* bytes, size_t size)
{
    const ssize_t written = ::syscall(SYS_write, file, bytes, size);
    if (written > 0 && s_power_log != nullptr)
        log_operation({OperationKind::write,
                       logged_path_of(file),
                       {},
                       std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(written))});
    return written;
}

/// Only logs the sync: in the test, the disk loses no power, so no sync is needed.
extern "C" int fsync(int file)
{
    log_operation({OperationKind::sync, logged_path_of(file)});
    return 0;
}

extern "C" int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept
{
    const auto done = static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
    if (done == 0)
        log_operation({OperationKind::rename, logged_path_at(from_folder, from), logged_path_at(to_folder, to)});
    return done;
}

extern "C" int unlinkat(int folder, const char* name, int flags) noexcept
{
    const auto done = static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
    if (done == 0) log_operation({OperationKind::unlink, logged_path_at(folder, name)});
    return done;
}

extern "C" int mkdirat(int folder, const char* name, mode_t mode) noexcept
{
    const auto done = static_cast<int>(::syscall(SYS_mkdirat, folder, name, mode));
    if (done == 0) log_operation({OperationKind::make_folder, logged_path_at(folder, name)});
    return done;
}

namespace warmgraph::test::power_cut_test {
namespace {

/// How much of a write is on the disk after the cut.
enum class Torn : std::uint8_t { gone, half, zeros, whole };

/// An operation on files and folders that are identified by numbers. The number of a file stays when its name changes.
struct Step {
    OperationKind what = OperationKind::returned;
    int object = -1;
    int parent = -1, old_parent = -1; ///< the folder of the name; for a rename, also the folder of the old name
    std::string name{}, old_name{}, bytes{};
};

class Disk {
public:
    Disk(const std::vector<Operation>& operations, const std::string& top)
    {
        m_numbers[top] = 0;
        for (const Operation& operation : operations) add(operation);
    }
    [[nodiscard]] std::size_t steps() const { return m_steps.size(); }
    /// Whether a sync among the first `count` operations makes this step safe.
    [[nodiscard]] bool is_safe(std::size_t step, std::size_t count) const
    {
        const Step& done = m_steps[step];
        const int synced = done.what == OperationKind::write ? done.object : done.parent;
        const auto is_sync_of = [&](int object) {
            return std::any_of(m_steps.begin() + static_cast<std::ptrdiff_t>(step),
                               m_steps.begin() + static_cast<std::ptrdiff_t>(count), [&](const Step& later) {
                                   return later.what == OperationKind::sync && later.object == object;
                               });
        };
        return is_sync_of(synced) && (done.old_parent < 0 || is_sync_of(done.old_parent));
    }
    [[nodiscard]] bool is_write(std::size_t step) const { return m_steps[step].what == OperationKind::write; }

    /// Returns the files with their contents, by path; a folder has the content "(folder)". `reached` says how much of
    /// each of the first `count` operations is on the disk.
    using Reached = std::function<Torn(std::size_t step)>;
    [[nodiscard]] std::map<std::string, std::string> after(std::size_t count, const Reached& reached) const
    {
        std::map<int, std::map<std::string, int>> names; // the names in each folder, and the numbers of their files
        std::map<int, std::string> contents;
        for (std::size_t i = 0; i < count; ++i) {
            const Step& step = m_steps[i];
            const Torn torn = is_safe(i, count) ? Torn::whole : reached(i);
            if (torn == Torn::gone) continue;
            apply(step, torn, names, contents);
        }
        std::map<std::string, std::string> files;
        put(files, names, contents, 0, "");
        return files;
    }

private:
    static std::pair<std::string, std::string> split(const std::string& path)
    {
        const auto slash = path.rfind('/');
        return {path.substr(0, slash), path.substr(slash + 1)};
    }
    int number_of(const std::string& path) const
    {
        const auto found = m_numbers.find(path);
        return found == m_numbers.end() ? -1 : found->second;
    }
    void add(const Operation& operation)
    {
        const auto [folder, name] = split(operation.path);
        Step step{operation.what, number_of(operation.path), number_of(folder), -1, name, {}, operation.bytes};
        switch (operation.what) {
        case OperationKind::create:
        case OperationKind::make_folder:
            step.object = m_numbers[operation.path] = ++m_objects;
            if (operation.what == OperationKind::make_folder) m_folders.insert(step.object);
            break;
        case OperationKind::rename:
            step.old_parent = step.parent;
            step.old_name = name;
            std::tie(step.parent, step.name) =
                std::pair(number_of(split(operation.to).first), split(operation.to).second);
            m_numbers.erase(operation.path);
            m_numbers[operation.to] = step.object;
            break;
        case OperationKind::unlink: m_numbers.erase(operation.path); break;
        default: break;
        }
        m_steps.push_back(std::move(step));
    }
    static void apply(const Step& step, Torn torn, std::map<int, std::map<std::string, int>>& names,
                      std::map<int, std::string>& contents)
    {
        switch (step.what) {
        case OperationKind::create:
        case OperationKind::make_folder: names[step.parent][step.name] = step.object; break;
        case OperationKind::rename:
            names[step.old_parent].erase(step.old_name);
            names[step.parent][step.name] = step.object;
            break;
        case OperationKind::unlink: names[step.parent].erase(step.name); break;
        case OperationKind::write:
            contents[step.object] += torn == Torn::whole  ? step.bytes
                                     : torn == Torn::half ? step.bytes.substr(0, step.bytes.size() / 2)
                                                          : std::string(step.bytes.size(), '\0');
            break;
        default: break;
        }
    }
    void put(std::map<std::string, std::string>& files, const std::map<int, std::map<std::string, int>>& names,
             const std::map<int, std::string>& contents, int folder, const std::string& path) const
    {
        const auto found = names.find(folder);
        if (found == names.end()) return;
        for (const auto& [name, object] : found->second) {
            const std::string below = path.empty() ? name : path + "/" + name;
            const auto content = contents.find(object);
            files[below] = m_folders.contains(object) ? "(folder)" : content == contents.end() ? "" : content->second;
            if (m_folders.contains(object)) put(files, names, contents, object, below);
        }
    }

    std::map<std::string, int> m_numbers; ///< the number by path, as the process sees it after the last operation
    std::set<int> m_folders{0};
    int m_objects = 0;
    std::vector<Step> m_steps;
};

/// The state of the folders that the cuts left.
struct CutReport {
    std::size_t folders = 0;
    std::vector<std::string> wrong; ///< entries or images that no process published, or folders that need manual repair
    std::vector<std::string> torn;  ///< incomplete files that have their final names
    std::vector<std::string> lost;  ///< objects that are lost although publish() had returned
};

class PowerCut : public StoreTest {
protected:
    PowerCut() : m_random(test_seed())
    {
        m_top = (m_dir.path() / "disk").string();
        fs::create_directory(m_top);
        m_root = fs::path(m_top) / "cache";
    }
    /// Logs the operations of `work`. When `work` calls `returned()`, all objects that are published by then must
    /// survive a cut.
    template <class Work>
    std::vector<Operation> log_of(Work work)
    {
        Log log{m_top};
        s_power_log = &log;
        work();
        s_power_log = nullptr;
        return log.operations;
    }
    void returned() const { s_power_log->operations.push_back({OperationKind::returned, m_top}); }

    /// Cuts after each operation. `versions[i]` is published when `returned` was logged i + 1 times. All versions have
    /// the same key.
    CutReport cut_everywhere(const std::vector<Operation>& operations, const std::vector<Entry>& versions)
    {
        const Disk disk(operations, m_top);
        CutReport seen;
        std::set<std::pair<std::size_t, std::map<std::string, std::string>>> known;
        std::size_t published = 0;
        for (std::size_t count = 0; count <= operations.size(); ++count) {
            if (count > 0 && operations[count - 1].what == OperationKind::returned) ++published;
            for (const Disk::Reached& reached : ways_to_lose(disk)) {
                const auto files = disk.after(count, reached);
                if (!known.insert({published, files}).second) continue;
                ++seen.folders;
                look_at(files, versions, published, fmt::format("cut after operation {}: ", count), seen);
            }
        }
        return seen;
    }
    const Bytes m_image = image_of("device code");
    const Entry m_first = make_entry(k_decode, 0, "first", {m_image});
    const Entry m_second = make_entry(k_decode, 0, "second", {m_image});

private:
    std::vector<Disk::Reached> ways_to_lose(const Disk& disk)
    {
        std::vector<Disk::Reached> ways{[](std::size_t) { return Torn::gone; },
                                        [](std::size_t) { return Torn::whole; }};
        for (const Torn bytes : {Torn::gone, Torn::half, Torn::zeros}) // names reach the disk before bytes, as on ext4
            ways.emplace_back([&disk, bytes](std::size_t step) { return disk.is_write(step) ? bytes : Torn::whole; });
        ways.emplace_back([&disk](std::size_t step) { return disk.is_write(step) ? Torn::whole : Torn::gone; });
        for (int i = 0; i < k_random_ways; ++i) { // tries random orders
            std::vector<Torn> torn(disk.steps());
            for (std::size_t step = 0; step < torn.size(); ++step) {
                torn[step] = static_cast<Torn>(m_random() % 4);
                if (!disk.is_write(step) && torn[step] != Torn::gone) torn[step] = Torn::whole;
            }
            ways.emplace_back([torn](std::size_t step) { return torn[step]; });
        }
        return ways;
    }
    void build(const std::map<std::string, std::string>& files)
    {
        fs::remove_all(m_top);
        fs::create_directory(m_top);
        for (const auto& [path, content] : files) {
            const fs::path whole = fs::path(m_top) / path;
            if (content == "(folder)") {
                fs::create_directory(whole);
                fs::permissions(whole, fs::perms::owner_all);
            } else {
                write(whole, content);
                fs::permissions(whole, fs::perms::owner_read | fs::perms::owner_write);
            }
        }
    }
    void look_at(const std::map<std::string, std::string>& files, const std::vector<Entry>& versions,
                 std::size_t published, const std::string& when, CutReport& seen)
    {
        build(files);
        look_for_torn_names(when, seen);
        const auto store = LocalStore::open(m_root);
        if (!store) {
            seen.wrong.push_back(when + store.error().message);
            return;
        }
        look_for_entries(**store, versions, published, when, seen);
        // Promise P4: no manual repair is needed.
        const auto again = (*store)->publish_image(m_image);
        const auto done = (*store)->publish(versions.back());
        if (!again || !done) {
            seen.wrong.push_back(when + (again ? done.error().message : again.error().message));
            return;
        }
        if ((*store)->entry(versions.back().header.key) != versions.back())
            seen.wrong.push_back(when + "it is published again and not there");
        for (const std::string& damage : damages_in(**store)) seen.wrong.push_back(when + damage);
    }
    /// Counters are only advisory and are not synced. A counter file that is torn starts again at zero.
    static std::vector<std::string> damages_in(const LocalStore& store, std::optional<ErrorCode> code = {})
    {
        const auto damages = store.check();
        if (!damages) return {damages.error().message};
        std::vector<std::string> lines;
        for (const auto& damage : *damages)
            if (damage.path.filename() != "usage.json" && damage.error.code == code.value_or(damage.error.code))
                lines.push_back(fmt::format("{}: {}", damage.path.string(), damage.error.message));
        return lines;
    }
    void look_for_entries(LocalStore& store, const std::vector<Entry>& versions, std::size_t published,
                          const std::string& when, CutReport& seen)
    {
        const auto entry = store.entry(versions.front().header.key);
        const auto image = store.image(sha256(m_image));
        const auto version = entry && *entry ? std::ranges::find(versions, **entry) : versions.end();
        if (entry && *entry && version == versions.end()) seen.wrong.push_back(when + "an entry that nobody published");
        if (image && *image && **image != m_image) seen.wrong.push_back(when + "an image that nobody published");
        if (published == 0) return;
        const bool is_there =
            version != versions.end() && static_cast<std::size_t>(version - versions.begin()) + 1 >= published;
        if (!is_there) seen.lost.push_back(when + "the entry is not there");
        if (!image || !*image) seen.lost.push_back(when + "the image is not there");
    }
    void look_for_torn_names(const std::string& when, CutReport& seen)
    {
        const auto store = LocalStore::open(m_root, {.access = store::StoreMode::read_only});
        if (!store) return;
        for (const std::string& damage : damages_in(**store, ErrorCode::corrupt)) seen.torn.push_back(when + damage);
    }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    static constexpr int k_random_ways = 1;
#else
    static constexpr int k_random_ways = 100;
#endif
    std::string m_top;
    std::mt19937_64 m_random;
};

std::string first_of(const std::vector<std::string>& lines)
{
    return lines.empty() ? "none" : fmt::format("{}, the first: {}", lines.size(), lines.front());
}

class PowerCutWhilePublishing : public PowerCut {
protected:
    /// Publishes twice: first without a folder, and then over the first entry.
    std::vector<Operation> publish_twice()
    {
        return log_of([&] {
            const auto store = open();
            for (const Entry& entry : {m_first, m_second}) {
                ASSERT_TRUE(succeeded(store->publish_image(m_image)));
                ASSERT_TRUE(succeeded(store->publish(entry)));
                returned();
            }
        });
    }
    static std::size_t drop_syncs(std::vector<Operation>& operations,
                                  const std::function<bool(const Operation&)>& which)
    {
        return std::erase_if(operations, [&](const Operation& operation) {
            return operation.what == OperationKind::sync && which(operation);
        });
    }
    static bool is_of_a_file(const Operation& sync) { return sync.path.contains("/.tmp-"); }
};

TEST_F(PowerCutWhilePublishing, NothingIsWrongTornOrLost)
{
    const auto operations = publish_twice();
    ASSERT_EQ(std::ranges::count(operations, OperationKind::returned, &Operation::what), 2);
    const CutReport seen = cut_everywhere(operations, {m_first, m_second});
    EXPECT_GT(seen.folders, 30U);
    EXPECT_TRUE(seen.wrong.empty()) << first_of(seen.wrong);
    EXPECT_TRUE(seen.torn.empty()) << first_of(seen.torn);
    EXPECT_TRUE(seen.lost.empty()) << first_of(seen.lost);
}

/// Both syncs are needed: without the first one, files are torn. This shows that the test above would notice it.
TEST_F(PowerCutWhilePublishing, WithoutTheFilesSyncWhatIsPublishedMayBeTornAndIsNeverWrong)
{
    auto operations = publish_twice();
    ASSERT_GE(drop_syncs(operations, is_of_a_file), 4U) << "the mark, an image, two entries";
    const CutReport seen = cut_everywhere(operations, {m_first, m_second});
    EXPECT_FALSE(seen.torn.empty());
    EXPECT_FALSE(seen.lost.empty());
    for (const std::string& wrong : seen.wrong) EXPECT_THAT(wrong, Not(HasSubstr("nobody published")));
}

TEST_F(PowerCutWhilePublishing, WithoutTheFoldersSyncWhatIsPublishedMayBeLostAndIsNeverWrong)
{
    auto operations = publish_twice();
    ASSERT_GE(drop_syncs(operations, [](const Operation& sync) { return !is_of_a_file(sync); }), 4U);
    const CutReport seen = cut_everywhere(operations, {m_first, m_second});
    EXPECT_TRUE(seen.torn.empty()) << first_of(seen.torn);
    EXPECT_FALSE(seen.lost.empty());
    for (const std::string& wrong : seen.wrong) EXPECT_THAT(wrong, Not(HasSubstr("nobody published")));
}

/// Files that were removed or moved may come back after a cut.
TEST_F(PowerCut, WhileEvictingSettingAsideAndClearingNothingIsWrong)
{
    const Entry other = make_entry(k_decode, 1, "other", {m_image});
    const auto operations = log_of([&] {
        const auto store = open({.max_variants = 1});
        ASSERT_TRUE(succeeded(store->publish_image(m_image)));
        ASSERT_TRUE(succeeded(store->publish(other)));
        ASSERT_TRUE(succeeded(store->publish(m_first))); // this evicts the other entry
        Log* const log = std::exchange(s_power_log, nullptr);
        flip(path_of(m_first.header.key), 300); // this write is not an operation of the store
        s_power_log = log;
        EXPECT_FALSE(store->entry(m_first.header.key)); // this moves the entry into quarantine
        ASSERT_TRUE(succeeded(store->clear(store::ClearRequest::everything())));
        ASSERT_TRUE(succeeded(store->publish_image(m_image)));
        ASSERT_TRUE(succeeded(store->publish(m_second)));
        returned(); // for the first version there is no promise
        returned();
    });
    const CutReport seen = cut_everywhere(operations, {m_first, m_second});
    EXPECT_GT(seen.folders, 30U);
    EXPECT_TRUE(seen.wrong.empty()) << first_of(seen.wrong);
    EXPECT_TRUE(seen.torn.empty()) << first_of(seen.torn);
    EXPECT_TRUE(seen.lost.empty()) << first_of(seen.lost);
}

} // namespace
} // namespace warmgraph::test::power_cut_test
