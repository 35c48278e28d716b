// Pruning: which objects it removes, in which order, and which objects stay because a process uses them.
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child_process.hpp"
#include "log_lines.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::prune_test {
namespace {

using std::chrono::minutes;
using store::PruneRequest;
using store::PruneResult;

class Prune : public StoreTest {
protected:
    /// Publishes an entry with its own image, as a process that ended `age` ago.
    Entry publish_aged(int variant, minutes age, const std::vector<Bytes>& shared = {})
    {
        std::vector<Bytes> images = shared;
        images.push_back(own_image(variant));
        const Entry entry = make_entry(k_decode, variant, "", images);
        {
            const auto store = open();
            for (const Bytes& image : images) EXPECT_TRUE(succeeded(store->publish_image(image)));
            EXPECT_TRUE(succeeded(store->publish(entry)));
        }
        for (const Bytes& image : images) make_older(path_of(image), age);
        make_older(path_of(entry.header.key), age);
        return entry;
    }
    static Bytes own_image(int variant) { return image_of(std::string(50'000, static_cast<char>('a' + variant))); }
    bool exists(const Entry& entry) const { return fs::exists(path_of(entry.header.key)); }
    bool exists(const Bytes& image) const { return fs::exists(path_of(image)); }
    static constexpr std::uint64_t k_plenty = 1ULL << 40;
};

TEST_F(Prune, TheLeastRecentlyUsedGoFirstWithTheirImagesAndWhatIsSharedStays)
{
    const Bytes shared = image_of(std::string(10'000, 'S'));
    const Entry oldest = publish_aged(0, minutes(50), {shared}), used = publish_aged(1, minutes(40), {shared}),
                next = publish_aged(2, minutes(30), {shared}), newest = publish_aged(3, minutes(20), {shared});
    make_older(path_of(shared), minutes(50));
    static_cast<void>(open()->entry(used.header.key)); // used by a process that has ended
    const auto store = open();
    const PruneResult planned = store->plan_prune({.bytes = 120'000}).value();
    EXPECT_TRUE(exists(oldest)) << "a plan changes nothing";
    const PruneResult pruned = store->prune({.bytes = 120'000}).value();
    EXPECT_FALSE(exists(oldest));
    EXPECT_FALSE(exists(own_image(0)));
    EXPECT_FALSE(exists(next));
    EXPECT_FALSE(exists(own_image(2)));
    EXPECT_TRUE(exists(used) && exists(own_image(1)));
    EXPECT_TRUE(exists(newest) && exists(own_image(3)));
    EXPECT_TRUE(exists(shared));
    for (const PruneResult& result : {planned, pruned}) {
        EXPECT_EQ(result.removed.of(store::ArtifactKind::entries).files, 2U);
        EXPECT_EQ(result.removed.of(store::ArtifactKind::images).files, 2U);
        EXPECT_EQ(result.before.files, 9U);
        EXPECT_EQ(result.after.files, 5U);
        EXPECT_EQ(result.before.bytes - result.after.bytes, result.removed.bytes());
        EXPECT_LE(result.after.bytes, 120'000U);
        EXPECT_EQ(result.in_use, 0U);
    }
    EXPECT_TRUE(store->check().value().empty());
    EXPECT_EQ(store->prune({.bytes = 0}).value().after.files, 0U) << "the shared one goes with the last that names it";
    EXPECT_FALSE(exists(shared));
}

TEST_F(Prune, WhatALivingProcessUsesStays)
{
    const Entry loaded = publish_aged(0, minutes(50)), ahead = publish_aged(1, minutes(49)),
                published = publish_aged(2, minutes(48)), read_only = publish_aged(3, minutes(47));
    Gate ready, end;
    ChildProcess user([&] {
        const auto store = open();
        const auto reader = open({.access = store::StoreMode::read_only});
        const bool ok = store->entry(loaded.header.key).value().has_value() &&
                        store->entry(ahead.header.key, store::ReadPurpose::preload).value().has_value() &&
                        store->publish(published) && reader->entry(read_only.header.key).value().has_value();
        for (const Entry& entry : {loaded, ahead, published, read_only})
            make_older(path_of(entry.header.key), minutes(60)); // so that the age of these files does not protect them
        ready.open();
        end.wait();
        return ok ? 0 : 1;
    });
    ready.wait();
    const PruneResult kept = open()->prune({.bytes = 0}).value();
    EXPECT_EQ(kept.in_use, 3U);
    EXPECT_TRUE(exists(loaded) && exists(own_image(0)));
    EXPECT_FALSE(exists(ahead)) << "it was never used";
    EXPECT_TRUE(exists(published));
    EXPECT_TRUE(exists(read_only));
    EXPECT_GT(kept.after.bytes, 0U);
    end.open();
    EXPECT_EQ(user.wait(), 0);
    EXPECT_EQ(open()->prune({.bytes = 0}).value().after.files, 0U) << "the dead use nothing";
}

/// If this was possible, a user who may only read the file could lock it for ever.
TEST_F(Prune, AReaderWhoLocksTheLeasesKeepsNothing)
{
    const Entry entry = publish_aged(0, minutes(50)), used = publish_aged(1, minutes(40));
    const int file = ::open((m_root / ".leases").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    struct flock whole{};
    whole.l_type = F_RDLCK;
    Gate ready, end;
    ChildProcess user([&] {
        const auto store = open();
        const bool ok = store->entry(used.header.key).value().has_value();
        ready.open();
        end.wait();
        return ok ? 0 : 1;
    });
    ready.wait();
    EXPECT_EQ(::fcntl(file, F_OFD_SETLK, &whole), -1) << "an exclusive lock is in the way, which no reader takes";
    end.open();
    EXPECT_EQ(user.wait(), 0);
    ASSERT_EQ(::fcntl(file, F_OFD_SETLK, &whole), 0);
    EXPECT_EQ(open()->plan_prune({.bytes = 0}).value().in_use, 0U);
    const PruneResult pruned = open()->prune({.bytes = 0}).value();
    EXPECT_EQ(pruned.in_use, 0U);
    EXPECT_EQ(pruned.after.files, 0U);
    EXPECT_FALSE(exists(entry));
    EXPECT_TRUE(succeeded(open()->publish(entry))) << "it is used without a lease";
    ::close(file);
}

/// A file system in which a file is used after the folder was listed and before the file is removed. The user is a
/// process that has ended and has no lease.
class UsedFiles final : public ForwardingFileSystem {
public:
    Path used; ///< the file that gets a new time when it is queried for the first time

private:
    Result<std::optional<FileInfo>> info_in(FileSystem& inner, const Path& path) override
    {
        auto info = inner.info(path);
        if (used.empty() || path != used) return info;
        EXPECT_TRUE(succeeded(inner.touch(path)));
        used.clear();
        return info;
    }
};

TEST_F(Prune, WhatWasUsedSinceItWasLookedAtStays)
{
    const Entry used = publish_aged(0, minutes(50)), unused = publish_aged(1, minutes(40));
    UsedFiles files;
    const auto store = open({}, files);
    files.used = path_of(used.header.key).lexically_relative(m_root);
    const PruneResult pruned = store->prune({.bytes = 0}).value();
    EXPECT_TRUE(files.used.empty());
    EXPECT_TRUE(exists(used));
    EXPECT_TRUE(exists(own_image(0)));
    EXPECT_FALSE(exists(unused));
    EXPECT_EQ(pruned.removed.of(store::ArtifactKind::entries).files, 1U);

    const store::ArtifactName name{store::ArtifactKind::compiled, sha256(as_bytes("a program"))};
    ASSERT_TRUE(succeeded(store->tier().put(name, as_bytes("compiled"))));
    const std::string hex = to_hex(name.digest);
    const fs::path path = m_root / "compiled" / hex.substr(0, 2) / (hex + ".compiled");
    make_older(path, minutes(60));
    files.used = path.lexically_relative(m_root);
    ASSERT_TRUE(succeeded(store->prune({.bytes = 0})));
    EXPECT_TRUE(files.used.empty());
    EXPECT_TRUE(fs::exists(path));
}

TEST_F(Prune, WhatThisProcessUsesStaysToo)
{
    const Entry entry = publish_aged(0, minutes(50));
    const auto store = open();
    ASSERT_TRUE(store->entry(entry.header.key).value());
    EXPECT_EQ(store->prune({.bytes = 0}).value().in_use, 1U);
    EXPECT_EQ(open()->prune({.bytes = 0}).value().in_use, 1U) << "nor does another store of the process take it";
    EXPECT_TRUE(exists(entry) && exists(own_image(0)));
}

TEST_F(Prune, ImagesThatNoEntryNamesGoUnlessTheirEntryMayBeOnTheWay)
{
    const Entry entry = publish_aged(0, minutes(15));
    const Bytes unused = image_of("unused"), young = image_of("young");
    const auto store = open();
    for (const Bytes& image : {unused, young}) ASSERT_TRUE(store->publish_image(image).value());
    make_older(path_of(unused), minutes(12));
    EXPECT_EQ(store->prune().value().removed.of(store::ArtifactKind::images).files, 1U);
    EXPECT_FALSE(exists(unused));
    EXPECT_TRUE(exists(young));
    EXPECT_TRUE(exists(entry) && exists(own_image(0)));
}

TEST_F(Prune, WhatWasNotUsedForLongGoesAlsoWhereThereIsRoom)
{
    const Entry old = publish_aged(0, minutes(60 * 50)), recent = publish_aged(1, minutes(60 * 20));
    EXPECT_EQ(open()->prune({.older = std::chrono::hours(48)}).value().removed.of(store::ArtifactKind::entries).files,
              1U);
    EXPECT_FALSE(exists(old));
    EXPECT_TRUE(exists(recent));
}

TEST_F(Prune, AnAgeBeyondAllTimeRemovesNothing)
{
    const Entry entry = publish_aged(0, minutes(60));
    for (const auto age : {std::chrono::seconds(std::chrono::days(200'000)), std::chrono::seconds::max()})
        EXPECT_EQ(open()->prune({.older = age}).value().removed.files(), 0U);
    EXPECT_TRUE(exists(entry));
}

TEST_F(Prune, ABudgetWithoutEndIsOne)
{
    constexpr auto k_all = std::numeric_limits<std::uint64_t>::max();
    const auto store = open({.budget = {.bytes = k_all, .files = k_all}});
    for (int variant = 0; variant < 3; ++variant) ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt, variant))));
    EXPECT_EQ(store->variants(k_prompt).value().size(), 3U);
    EXPECT_EQ(store->budget().bytes, k_all);
}

/// If an entry cannot be read, it may need any image. Another process that can read the entry would miss a removed
/// image.
TEST_F(Prune, WhereAnEntryCannotBeReadImagesStayAndTheRestIsKeptWithinTheBudget)
{
    const Entry old = publish_aged(0, minutes(50)), newer = publish_aged(1, minutes(40));
    const Bytes unused = image_of("unused");
    ASSERT_TRUE(open()->publish_image(unused).value());
    make_older(path_of(unused), minutes(50));
    fs::permissions(path_of(newer.header.key), fs::perms::others_write, fs::perm_options::add); // no longer trusted
    const auto store = open();
    const PruneResult roomy = store->prune({.bytes = 40'000}).value();
    EXPECT_EQ(roomy.removed.files(), 0U) << "images alone are over the budget: no entry makes up for them";
    EXPECT_THAT(roomy.why_not, HasSubstr("images are kept"));
    EXPECT_TRUE(exists(unused) && exists(own_image(1)));
    const PruneResult pruned = store->prune({.bytes = 0}).value();
    EXPECT_EQ(pruned.removed.of(store::ArtifactKind::entries).files, 2U);
    EXPECT_EQ(pruned.removed.of(store::ArtifactKind::images).files, 0U);
    EXPECT_EQ(store->prune({.bytes = 0}).value().after.files, 0U) << "then nobody needs an image";
    EXPECT_FALSE(exists(old));
}

TEST_F(Prune, AForkedChildTakesNothingOfItsParents)
{
    const Entry used = publish_aged(0, minutes(50)), other = publish_aged(1, minutes(40)),
                later = publish_aged(2, minutes(30));
    const auto store = open();
    ASSERT_TRUE(store->entry(used.header.key).value());
    Gate ready;
    ChildProcess child([&] {
        ready.wait();
        const bool ok = store->prune({.bytes = 0}) && store->tier().note_use(used.header.key);
        return ok ? 0 : 1;
    });
    ASSERT_TRUE(store->entry(later.header.key).value());
    ready.open();
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(exists(used) && exists(later)) << "its parent uses them";
    EXPECT_FALSE(exists(other));
    ChildProcess stranger([&] { return open()->prune({.bytes = 0}).value().in_use == 2 ? 0 : 1; });
    EXPECT_EQ(stranger.wait(), 0) << "and still holds its lease";
}

TEST_F(Prune, ALeaseIsTakenAgainWhereTheFolderWasMadeAnew)
{
    const Entry entry = make_entry(k_decode);
    const auto store = open();
    ASSERT_TRUE(succeeded(store->publish(entry)));
    fs::remove_all(m_root);
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
    ASSERT_TRUE(succeeded(store->publish(entry)));
    ChildProcess stranger([&] { return open()->prune({.bytes = 0}).value().in_use == 2 ? 0 : 1; });
    EXPECT_EQ(stranger.wait(), 0);
    EXPECT_TRUE(fs::exists(path_of(entry.header.key)));
}

TEST_F(Prune, QuarantineGoesBeforeEntries)
{
    const Entry good = publish_aged(0, minutes(10)), bad = publish_aged(1, minutes(15));
    flip(path_of(bad.header.key), 300);
    EXPECT_FALSE(open()->entry(bad.header.key));
    ASSERT_EQ(quarantined().size(), 1U);
    const PruneResult before = open()->plan_prune({.bytes = k_plenty}).value();
    EXPECT_EQ(before.before.files, 5U) << "an entry, two images, a damaged entry and its reason";
    EXPECT_EQ(before.removed.quarantined.files, 0U) << "there is room";
    EXPECT_EQ(before.removed.of(store::ArtifactKind::images).files, 1U);
    const PruneResult pruned = open()->prune({.bytes = before.after.bytes - 1}).value();
    EXPECT_GE(pruned.removed.quarantined.bytes, 1U);
    EXPECT_EQ(pruned.removed.of(store::ArtifactKind::entries).files, 0U);
    EXPECT_TRUE(exists(good));
}

TEST_F(Prune, TheBudgetIsKeptByWhoPublishes)
{
    for (int variant = 0; variant < 6; ++variant) publish_aged(variant, minutes(60 - variant));
    {
        const auto store = open({.budget = {.bytes = 200'000}}, posix_file_system(), m_set_clock);
        ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
        const auto total = store->plan_prune({.bytes = k_plenty}).value().before;
        EXPECT_LE(total.bytes, 200'000U);
        EXPECT_GT(total.bytes, 100'000U) << "and no more than that is thrown away";
        EXPECT_TRUE(fs::exists(path_of(make_entry(k_prompt).header.key))) << "never what was just published";
        EXPECT_TRUE(store->check().value().empty());
    }
    {
        const auto store = open({.budget = {.files = 3}}, posix_file_system(), m_set_clock);
        ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt, 1))));
        EXPECT_LE(store->plan_prune({.bytes = k_plenty}).value().before.files, 3U);
    }
}

TEST_F(Prune, TheBudgetIsKeptWhileOneProcessPublishesOnAndOn)
{
    const auto store = open({.budget = {.bytes = 300'000}}, posix_file_system(), m_set_clock);
    for (int variant = 0; variant < 20; ++variant) {
        publish_aged(variant, minutes(60 - variant)); // published by processes that have ended
        ASSERT_TRUE(store->publish_image(image_of(std::string(1000, 'x') + std::to_string(variant))).value());
        ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt, variant))));
    }
    // The store's own entries are small and in use. It only looks at other entries when its own may be too many.
    EXPECT_EQ(store->variants(k_prompt).value().size(), 20U);
    const auto again = open({.budget = {.bytes = 300'000}}, posix_file_system(), m_set_clock);
    ASSERT_TRUE(succeeded(again->publish(make_entry(k_prompt, 21))));
    EXPECT_LE(again->plan_prune({.bytes = k_plenty}).value().before.bytes, 300'000U);
}

/// A wrong clock gave the file this date. If the date counted, the file would stay for ever, and all other files would
/// be removed instead.
TEST_F(Prune, ADateInTheFutureIsTheOldestUntilItIsUsed)
{
    const Entry first = publish_aged(0, minutes(50)), future = publish_aged(1, minutes(0)),
                last = publish_aged(2, minutes(20));
    for (const fs::path& path : {path_of(future.header.key), path_of(own_image(1))})
        make_older(path, -minutes(60 * 24));
    const PruneResult planned = open()->plan_prune({.bytes = 140'000}).value();
    EXPECT_EQ(planned.removed.of(store::ArtifactKind::entries).files, 1U);
    static_cast<void>(open()->entry(future.header.key)); // used by a process that has ended
    const auto store = open();
    ASSERT_TRUE(succeeded(store->prune({.bytes = 140'000})));
    EXPECT_TRUE(exists(future) && exists(last)) << "the use set it right";
    EXPECT_FALSE(exists(first));

    for (const fs::path& path : {path_of(future.header.key), path_of(own_image(1))})
        make_older(path, -minutes(60 * 24));
    ASSERT_TRUE(succeeded(store->prune({.bytes = 70'000})));
    EXPECT_FALSE(exists(future) || exists(own_image(1)));
    EXPECT_TRUE(exists(last));
    make_older(path_of(last.header.key), -minutes(60 * 24));
    EXPECT_EQ(store->prune({.older = std::chrono::hours(1)}).value().removed.of(store::ArtifactKind::entries).files,
              1U);
}

/// A file system in which each query takes a millisecond of the test's clock.
class SlowFiles final : public ForwardingFileSystem {
public:
    explicit SlowFiles(SetClock& clock, std::chrono::microseconds takes) : m_clock(clock), m_takes(takes) {}
    std::atomic<int> looks = 0;

protected:
    Result<std::optional<FileInfo>> info_in(FileSystem& inner, const Path& path) override
    {
        ++looks;
        m_clock.sleep_for(m_takes);
        return ForwardingFileSystem::info_in(inner, path);
    }

private:
    SetClock& m_clock;
    std::chrono::microseconds m_takes;
};

class LargeFolder : public Prune {
protected:
    static constexpr int k_entries = 300;
    LargeFolder()
    {
        const Entry entry = make_entry(k_decode);
        open()->publish(entry).value();
        const std::string bytes = text_of(path_of(entry.header.key));
        m_size = bytes.size();
        for (int i = 0; i < k_entries; ++i) {
            const fs::path path = folder({k_decode.model_info, k_decode.rank, fmt::format("g{}", i)}) /
                                  path_of(entry.header.key).filename();
            write(path, bytes);
            ::chmod(path.parent_path().c_str(), 0700);
            ::chmod(path.c_str(), 0600);
        }
    }
    [[nodiscard]] int entries() const
    {
        int count = 0;
        for (const auto& item : fs::recursive_directory_iterator(m_root)) count += item.path().extension() == ".wg";
        return count;
    }
    std::uint64_t m_size = 0;
};

TEST_F(LargeFolder, IsLookedThroughBehindTheCallAndPrunedThere)
{
    SlowFiles files(m_set_clock, std::chrono::milliseconds(1));
    const auto store = open({.budget = {.bytes = m_size * 100}}, files, m_set_clock);
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
    for (int i = 0; i < 1000 && entries() > 101; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_LE(entries(), 101);
    EXPECT_GE(entries(), 80);
    EXPECT_TRUE(fs::exists(path_of(make_entry(k_prompt).header.key)));
}

TEST_F(LargeFolder, WhatASlowDiskLetsBeSeenIsPrunedAndTheRestIsSaid)
{
    log().set_level(spdlog::level::warn);
    const LogLines lines;
    {
        SlowFiles files(m_set_clock, std::chrono::milliseconds(500)); // so slow that only 120 queries fit in a minute
        const auto store = open({.budget = {.bytes = m_size * 20}}, files, m_set_clock);
        ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
        for (int i = 0; i < 1000 && lines.with("could not be scanned within a minute").empty(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_LT(entries(), k_entries - 50);
    EXPECT_GT(entries(), 100) << "and what was not seen stays";
    EXPECT_EQ(lines.with("could not be scanned within a minute").size(), 1U);
}

TEST_F(Prune, ABudgetThatCannotBeKeptIsSaidOnce)
{
    log().set_level(spdlog::level::warn);
    const LogLines lines;
    const auto store = open({.budget = {.bytes = 10}}, posix_file_system(), m_set_clock);
    for (int variant = 0; variant < 3; ++variant) ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt, variant))));
    const auto said = lines.with("its budget is 10 B");
    ASSERT_EQ(said.size(), 1U);
    EXPECT_THAT(said[0], HasSubstr("running processes use the files that would be removed"));
}

TEST_F(Prune, DefaultsAreEightGibibytesOrATenthOfTheDisk)
{
    class SmallDisk final : public ForwardingFileSystem {
    public:
        std::uint64_t bytes = 0;

    private:
        Result<std::uint64_t> disk_bytes_in(FileSystem&, const Path&) override { return bytes; }
    } disk;
    disk.bytes = 1ULL << 40;
    EXPECT_EQ(open({}, disk)->budget().bytes, 8ULL << 30);
    EXPECT_EQ(open({}, disk)->budget().files, 100'000U);
    disk.bytes = 10ULL << 30;
    EXPECT_EQ(open({}, disk)->budget().bytes, 1ULL << 30);
    EXPECT_EQ(open({.budget = {.bytes = 17, .files = 3}}, disk)->budget().bytes, 17U);
    EXPECT_EQ(open({.budget = {.bytes = 17, .files = 3}}, disk)->budget().files, 3U);
    disk.bytes = 0;
    EXPECT_EQ(open({}, disk)->budget().bytes, 8ULL << 30) << "a file system in memory does not know";
    FaultyFileSystem broken;
    const auto store = open({}, broken);
    broken.fail_all("inspect the disk", ErrorCode::io_failed);
    EXPECT_EQ(store->budget().bytes, 8ULL << 30);
}

TEST_F(Prune, RefreshedEntriesLeaveNoImages)
{
    publish_aged(0, minutes(15));
    const Bytes fresh = image_of("fresh");
    {
        const auto store = open();
        ASSERT_TRUE(store->publish_image(fresh).value());
        ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 0, "", {fresh}))));
        EXPECT_TRUE(exists(own_image(0)));
    }
    EXPECT_FALSE(exists(own_image(0))) << "at the end of the process that took its last user away";
    EXPECT_TRUE(exists(fresh));
}

TEST_F(Prune, OneProcessAtATimeMakesRoom)
{
    publish_aged(0, minutes(15));
    const auto store = open();
    const auto lock = posix_file_system().try_lock(m_root / ".prune.lock", 0600).value();
    ASSERT_NE(lock, nullptr);
    const PruneResult pruned = store->prune({.bytes = 0}).value();
    EXPECT_EQ(pruned.removed.files(), 0U);
    EXPECT_THAT(pruned.why_not, HasSubstr("another process"));
}

TEST_F(Prune, IsAskedOfAWritableStoreAndPlannedInAny)
{
    publish_aged(0, minutes(15));
    const auto reader = open({.access = store::StoreMode::read_only});
    EXPECT_TRUE(failed_with(reader->prune({.bytes = 0}), ErrorCode::permission_denied, "read-only"));
    EXPECT_EQ(reader->plan_prune({.bytes = 0}).value().removed.of(store::ArtifactKind::entries).files, 1U);
    fs::remove(m_root / "CACHEDIR.TAG");
    write(m_root / "notes.txt", "somebody's");
    EXPECT_TRUE(failed_with(reader->plan_prune({.bytes = 0}), ErrorCode::permission_denied, "CACHEDIR.TAG"));
}

TEST_F(Prune, AFailureOfTheDiskNeverReachesThePublisher)
{
    for (const char* operation : {"list", "inspect", "lock", "open locks", "inspect the disk"}) {
        FaultyFileSystem files;
        const auto store = open({.budget = {.bytes = 1}}, files);
        files.fail_all(operation, ErrorCode::io_failed);
        const Entry entry = make_entry(k_decode, 7, operation);
        const auto published = store->publish(entry);
        files.stop_failing();
        if (published) {
            EXPECT_EQ(store->entry(entry.header.key).value(), entry) << operation;
        } else {
            EXPECT_STREQ(operation, "list") << "which the mark needs";
        }
    }
}

/// An earlier version could be killed at 16 of 138 points so that a temporary file stayed for ever.
TEST_F(Prune, TheNextProcessSweepsUpBehindDeadWritersEverywhere)
{
    const Bytes image = image_of("code");
    const Entry entry = make_entry(k_decode, 0, "", {image});
    const auto left_overs = [&] {
        std::vector<std::string> names;
        for (const auto& item : fs::recursive_directory_iterator(m_root))
            if (item.path().filename().string().starts_with(".tmp-")) names.push_back(item.path().string());
        return names;
    };
    int died = 0;
    for (std::uint64_t nth = 1; nth < 80; ++nth) {
        ChildProcess child([&] {
            FaultyFileSystem files;
            files.fail_at(nth, ErrorCode::io_failed, FaultyFileSystem::Lasts::for_ever,
                          FaultyFileSystem::Leaves::half_a_file);
            const auto store = LocalStore::open(m_root, {}, files);
            if (!store) return 0;
            static_cast<void>((*store)->publish_image(image));
            static_cast<void>((*store)->publish(entry));
            (*store)->add_usage(k_decode, {.hits = 1});
            return 0;
        });
        ASSERT_EQ(child.wait(), 0);
        if (!fs::exists(m_root)) continue;
        died += left_overs().empty() ? 0 : 1;
        static_cast<void>(open()); // opens the folder only to read, and closes it
        EXPECT_TRUE(left_overs().empty()) << nth;
        const auto store = open();
        ASSERT_TRUE(succeeded(store->clear(store::ClearRequest::everything())));
    }
    EXPECT_GT(died, 2) << "nothing was left over anywhere";
}

TEST_F(Prune, AnEntryThatIsSetAsideIsGoneUnlessItWasReplaced)
{
    const auto store = open();
    const Entry entry = make_entry(k_decode), better = make_entry(k_decode, 0, "better");
    ASSERT_TRUE(succeeded(store->publish(entry)));
    ASSERT_TRUE(succeeded(store->publish(better)));
    const Error reason{ErrorCode::stale, "the driver refuses its image"};
    store->set_aside(entry.header, reason);
    EXPECT_EQ(store->entry(better.header.key).value(), better) << "it is another one";
    open({.access = store::StoreMode::read_only})->set_aside(better.header, reason);
    EXPECT_EQ(store->entry(better.header.key).value(), better);
    store->set_aside(better.header, reason);
    EXPECT_FALSE(store->entry(better.header.key).value());
    ASSERT_EQ(quarantined().size(), 1U);
    EXPECT_THAT(text_of(m_root / "quarantine" / (quarantined()[0] + ".reason")),
                HasSubstr("stale: the driver refuses its image"));
}

} // namespace
} // namespace warmgraph::test::prune_test
