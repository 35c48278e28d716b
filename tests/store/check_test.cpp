// `check` must find all damage that the tests make, without a false alarm, and change nothing. `repair` must cure the
// damage.
#include <sys/stat.h>

#include "child_process.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::check_test {
namespace {

/// The name of a temporary file whose writer died while it published.
std::string name_of_dead_writers_temporary(const fs::path& root)
{
    ChildProcess child([&] {
        FaultyFileSystem files;
        const auto store = LocalStore::open(root, {}, files);
        const Entry entry = make_entry(k_decode, 1000);
        for (std::uint64_t nth = 1; nth < 20; ++nth) {
            files.fail_at(nth, ErrorCode::io_failed, FaultyFileSystem::Lasts::for_ever,
                          FaultyFileSystem::Leaves::half_a_file);
            if ((*store)->publish(entry)) break;
            for (const std::string& name : names_in(root / k_decode.model_info / k_decode.rank / k_decode.function)) {
                if (name.starts_with(".tmp-")) return 0;
            }
        }
        return 1;
    });
    if (child.wait() != 0) throw std::runtime_error("no temporary was left");
    for (const std::string& name : names_in(root / k_decode.model_info / k_decode.rank / k_decode.function)) {
        if (name.starts_with(".tmp-")) return name;
    }
    throw std::runtime_error("no temporary was left");
}

/// The name of a temporary file that belongs to a process on another machine.
constexpr const char* k_others_temporary =
    ".tmp-other-host.4026531836-1f0c2d3e-4b5a-6978-8796-a5b4c3d2e1f0-17-0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

class Check : public StoreTest {
protected:
    Check()
    {
        m_store = open();
        for (const Bytes& image : {m_shared, m_own}) EXPECT_TRUE(m_store->publish_image(image).value());
        EXPECT_TRUE(succeeded(m_store->publish(m_first)));
        EXPECT_TRUE(succeeded(m_store->publish(m_second)));
        EXPECT_TRUE(succeeded(m_store->publish(make_entry(k_prompt))));
        m_store->add_usage(k_decode, {.hits = 1});
    }
    /// Runs check. Returns its findings by path. check must change nothing.
    std::map<std::string, ErrorCode> found()
    {
        const auto before = snapshot(m_root);
        std::map<std::string, ErrorCode> result;
        const auto damages = m_store->check();
        EXPECT_TRUE(succeeded(damages));
        for (const auto& damage : *damages) {
            EXPECT_TRUE(result.emplace(damage.path.string(), damage.error.code).second)
                << damage.path << " is named twice";
            EXPECT_FALSE(damage.error.message.empty());
        }
        EXPECT_EQ(snapshot(m_root), before) << "check changed something";
        return result;
    }
    std::string relative(const fs::path& path) const { return path.lexically_relative(m_root).string(); }

    Bytes m_shared = image_of("shared");
    Bytes m_own = image_of("own");
    Entry m_first = make_entry(k_decode, 0, "", {m_shared});
    Entry m_second = make_entry(k_decode, 1, "", {m_shared, m_own});
    std::unique_ptr<LocalStore> m_store;
};

using Found = std::map<std::string, ErrorCode>;

TEST_F(Check, AHealthyCacheHasNothing)
{
    const auto lock = m_store->try_record_lock(m_first.header.key); // holds the lock from now on
    fs::create_directories(m_root / "autotune" / "ab");
    write(m_root / "autotune" / "ab" / ("ab" + std::string(62, '0') + ".best_config"), "{}");
    fs::create_directories(m_root / "profile");
    write(m_root / "quarantine" / "anything", "damaged");
    EXPECT_EQ(found(), Found{});
}

TEST_F(Check, AnEmptyCacheHasNothing)
{
    m_root = m_dir.path() / "other";
    m_store = open();
    EXPECT_EQ(found(), Found{});
}

TEST_F(Check, FindsEverySeededDamageAndNothingElse)
{
    Found seeded;
    const auto seed = [&](const fs::path& path, ErrorCode code) { seeded[relative(path)] = code; };

    fs::create_directories(m_root / "autotune" / "ab");
    fs::create_directories(m_root / "autotune" / "kernels");
    write(m_root / "autotune" / "ab" / "mine.best_config", "{}");
    seed(m_root / "autotune" / "kernels", ErrorCode::invalid_argument);
    seed(m_root / "autotune" / "ab" / "mine.best_config", ErrorCode::invalid_argument);
    const Entry flipped = make_entry(k_decode, 10);
    const Entry cut = make_entry(k_decode, 11);
    const Entry pipe = make_entry(k_decode, 12);
    const Entry foreign_key = make_entry(k_decode, 13);
    const Entry imageless = make_entry(k_decode, 14, "", {image_of("missing")});
    for (const Entry& entry : {flipped, cut, foreign_key, imageless}) ASSERT_TRUE(succeeded(m_store->publish(entry)));
    flip(path_of(flipped.header.key), 250);
    seed(path_of(flipped.header.key), ErrorCode::corrupt);
    fs::resize_file(path_of(cut.header.key), 100);
    seed(path_of(cut.header.key), ErrorCode::corrupt);
    ASSERT_EQ(::mkfifo(path_of(pipe.header.key).c_str(), 0600), 0);
    seed(path_of(pipe.header.key), ErrorCode::corrupt);
    fs::copy_file(path_of(m_first.header.key), path_of(foreign_key.header.key), fs::copy_options::overwrite_existing);
    seed(path_of(foreign_key.header.key), ErrorCode::stale);
    seed(path_of(imageless.header.key), ErrorCode::not_found);

    const Bytes image = image_of("a third image");
    ASSERT_TRUE(m_store->publish_image(image).value());
    flip(path_of(image), 3);
    seed(path_of(image), ErrorCode::corrupt);
    write(folder(k_prompt) / "usage.json", "{");
    seed(folder(k_prompt) / "usage.json", ErrorCode::corrupt);

    const fs::path foreign[] = {m_root / "notes.txt",
                                m_root / "a b",
                                m_root / "images" / "README",
                                m_root / "images" / "zz" / "x",
                                m_root / k_decode.model_info / "file",
                                folder() / "core.1234",
                                folder() / "short.wg",
                                folder() / ".lock-mine",
                                folder(k_prompt) / ".tmp-mine",
                                m_root / "CACHEDIR.TAG.bak",
                                path_of(m_own).parent_path() / to_hex(sha256(as_bytes("elsewhere")))};
    for (const fs::path& path : foreign) {
        write(path, "text");
        seed(path, ErrorCode::invalid_argument);
    }
    write(m_root / "a" / "b" / "c" / "usage.json", "{"); // not in a function's folder, so check ignores it
    seed(m_root / "a", ErrorCode::invalid_argument);
    // This must come first, because a process that opens the folder removes the files of dead writers.
    seed(folder() / name_of_dead_writers_temporary(m_root), ErrorCode::io_failed);
    const fs::path old_temporary = folder(k_prompt) / k_others_temporary;
    write(old_temporary, "half");
    make_older(old_temporary, std::chrono::hours(25));
    seed(old_temporary, ErrorCode::io_failed);
    write(m_root / k_others_temporary, "half"); // not damage, because its writer may be alive

    EXPECT_EQ(found(), seeded);
}

TEST_F(Check, ADamagedImageIsNamedOnceAndNotAgainForItsEntries)
{
    flip(path_of(m_shared), 0);
    EXPECT_EQ(found(), (Found{{relative(path_of(m_shared)), ErrorCode::corrupt}}));
}

TEST_F(Check, LeavesALivingWritersTemporaryInPeace)
{
    FaultyFileSystem files;
    const auto store = open({}, files);
    for (std::uint64_t nth = 1; names_in(folder(k_prompt)).size() < 2; ++nth) {
        ASSERT_LT(nth, 20U);
        files.fail_at(nth, ErrorCode::io_failed, FaultyFileSystem::Lasts::for_ever,
                      FaultyFileSystem::Leaves::half_a_file);
        EXPECT_FALSE(store->publish(make_entry(k_prompt, 1)));
    }
    EXPECT_EQ(found(), Found{});
    EXPECT_TRUE(m_store->repair().value().empty());
    EXPECT_EQ(names_in(folder(k_prompt)).size(), 2U);
}

/// A file system in which a temporary file vanishes after the first query about it.
class FinishedFiles final : public ForwardingFileSystem {
    Result<std::optional<FileInfo>> info_in(FileSystem& inner, const Path& path) override
    {
        auto found = inner.info(path);
        if (path.filename().string().starts_with(".tmp-")) {
            EXPECT_TRUE(succeeded(inner.remove(path)));
        }
        return found;
    }
};

TEST_F(Check, AWriterThatIsDoneAndEndsMeanwhileHasLeftNothing)
{
    const fs::path temporary = folder() / name_of_dead_writers_temporary(m_root);
    EXPECT_EQ(found(), (Found{{relative(temporary), ErrorCode::io_failed}}));
    FinishedFiles files;
    const auto damages = take(open({.access = store::StoreMode::read_only}, files)->check());
    EXPECT_TRUE(damages.empty());
    EXPECT_FALSE(fs::exists(temporary));
}

TEST_F(Check, PublishSweepsUpBehindADeadWriter)
{
    const std::string name = name_of_dead_writers_temporary(m_root);
    ASSERT_TRUE(fs::exists(folder() / name));
    ASSERT_TRUE(succeeded(m_store->publish(make_entry(k_prompt, 5))));
    EXPECT_TRUE(fs::exists(folder() / name)) << "another folder's writer leaves it";
    ASSERT_TRUE(succeeded(m_store->publish(make_entry(k_decode, 5))));
    EXPECT_FALSE(fs::exists(folder() / name));
}

TEST_F(Check, RepairCuresWhatCheckFindsAndLeavesTheRest)
{
    flip(path_of(m_first.header.key), 250);
    flip(path_of(m_own), 0);
    write(folder() / "usage.json", "{");
    write(folder() / "notes.txt", "mine");
    write(folder() / ".lock-0123456789abcdef", "");
    const std::string temporary = name_of_dead_writers_temporary(m_root);
    const auto held = m_store->try_record_lock(m_second.header.key).value();

    const auto repaired = take(m_store->repair());
    EXPECT_EQ(repaired.size(), 6U) << "entry, image, the entry that named it, usage, notes, temporary";
    EXPECT_EQ(quarantined().size(), 3U);
    EXPECT_FALSE(fs::exists(folder() / temporary));
    EXPECT_FALSE(fs::exists(folder() / ".lock-0123456789abcdef"));
    EXPECT_NE(held, nullptr);
    EXPECT_EQ(open()->try_record_lock(m_second.header.key).value(), nullptr) << "a lock in use stays";
    EXPECT_EQ(found(), (Found{{relative(folder() / "notes.txt"), ErrorCode::invalid_argument}}));
    EXPECT_EQ(m_store->functions().value().size(), 2U);
    EXPECT_EQ(m_store->variants(k_prompt).value().size(), 1U);
}

} // namespace
} // namespace warmgraph::test::check_test
