// The tag (CACHEDIR.TAG): the library makes it with the folder, and never in another user's folder. In a folder without
// the tag, no file is changed; in a folder with the tag, only files of the library are changed.
#include <sys/stat.h>

#include "store_fixture.hpp"

namespace warmgraph::test::mark_test {
namespace {

using store::ClearRequest;
using store::StoreMode;

constexpr const char* k_tag = "CACHEDIR.TAG";
constexpr const char* k_uuid = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
/// The name of a temporary file that belongs to a process on another machine.
const std::string k_temporary =
    fmt::format(".tmp-other-host.4026531836-1f0c2d3e-4b5a-6978-8796-a5b4c3d2e1f0-17-{}", k_uuid);
const std::string k_digest(64, 'a');

class Mark : public StoreTest {
protected:
    std::string mark() const { return snapshot(m_root).at(k_tag); }
    /// Writes a file of another program. It is so old that any clean-up would remove it.
    void plant(const fs::path& path) const
    {
        write(m_root / path, "of somebody: " + path.string());
        make_older(m_root / path, std::chrono::hours(48));
    }
    /// Lets the store make every kind of file that it makes.
    static void use(LocalStore& store)
    {
        EXPECT_TRUE(store.publish_image(image_of("code")).value());
        for (const auto& function : {k_decode, k_prompt})
            EXPECT_TRUE(succeeded(store.publish(make_entry(function, 0, "", {image_of("code")}))));
        store.add_usage(k_decode, {.hits = 1});
    }
};

TEST_F(Mark, IsInEveryFolderThatTheStoreMakes)
{
    open();
    EXPECT_THAT(mark(), StartsWith("Signature: 8a477f597d28d172789f06886806bc55\n# warmgraph "));
    EXPECT_THAT(mark(), HasSubstr(fmt::format("entry format {}\n", cachefmt::k_format_version)));
    EXPECT_EQ((*posix_file_system().info(m_root / k_tag))->mode, 0600U);
}

TEST_F(Mark, IsMadeInAnEmptyFolder)
{
    fs::create_directory(m_root);
    use(*open());
    EXPECT_THAT(mark(), HasSubstr("warmgraph"));
}

TEST_F(Mark, IsMadeInAFolderWhoseMakerDiedBeforeMarkingIt)
{
    write(m_root / k_temporary, "Signature");
    use(*open());
    EXPECT_THAT(mark(), HasSubstr("warmgraph"));
}

TEST_F(Mark, IsMadeOnceAndStaysAlsoWhereAnotherVersionMadeIt)
{
    use(*open());
    std::string text = mark();
    text.replace(text.find("format ") + 7, 1, "99");
    write(m_root / k_tag, text);
    make_older(m_root / k_tag, std::chrono::hours(1));
    const auto before = fs::last_write_time(m_root / k_tag);
    const auto store = open();
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 1))));
    ASSERT_TRUE(succeeded(store->clear(store::ClearRequest::everything())));
    EXPECT_EQ(mark(), text);
    EXPECT_GT(fs::last_write_time(m_root / k_tag), before) << "who cleans up by age must not take it first";
}

TEST_F(Mark, IsNotMadeWhereAnythingElseLies)
{
    for (const std::string& path : {std::string("notes.txt"), std::string(".hidden"), std::string("a/b/c/usage.json"),
                                    std::string(k_tag), std::string(".tmp-mine"), "images/bb/" + k_digest,
                                    k_decode.model_info + "/" + k_decode.rank + "/decode/notes.txt"}) {
        fs::remove_all(m_root);
        plant(path);
        const auto before = snapshot(m_root);
        const auto time = fs::last_write_time(m_root);
        const auto store = LocalStore::open(m_root);
        const std::string first = path.substr(0, path.find('/'));
        for (const std::string& says : {m_root.string() + " has no CACHEDIR.TAG of warmgraph",
                                        "contains '" + first + "'", "for example " + (m_root / "warmgraph").string()})
            EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, says));
        EXPECT_THAT(store.error().message, Not(HasSubstr("delete"))) << "it may be somebody's home";
        EXPECT_EQ(snapshot(m_root), before);
        EXPECT_EQ(fs::last_write_time(m_root), time) << "not even a probe was there";
    }
}

TEST_F(Mark, IsNotNeededForReading)
{
    use(*open());
    fs::remove(m_root / k_tag);
    const auto before = snapshot(m_root);
    const auto store = open({.access = StoreMode::read_only});
    EXPECT_TRUE(store->entry(make_entry(k_decode, 0, "", {image_of("code")}).header.key).value());
    EXPECT_TRUE(store->image(sha256(image_of("code"))).value());
    const auto damages = store->check().value();
    ASSERT_EQ(damages.size(), 1U);
    EXPECT_EQ(damages[0].path, k_tag);
    EXPECT_EQ(damages[0].error.code, ErrorCode::not_found);
    EXPECT_THAT(damages[0].error.message, HasSubstr("the next recording writes it again"));
    EXPECT_EQ(snapshot(m_root), before);
}

TEST_F(Mark, IsDemandedByEveryCallThatChangesFiles)
{
    const auto store = open();
    use(*store);
    const Entry damaged = make_entry(k_decode, 7);
    ASSERT_TRUE(succeeded(store->publish(damaged)));
    flip(path_of(damaged.header.key), 250);
    fs::remove(m_root / k_tag);
    plant("notes.txt"); // without this file, the tag would be made again
    const auto before = snapshot(m_root);
    const EntryKey key = make_entry(k_prompt).header.key;
    const auto refused = [](const auto& result) {
        return failed_with(result, ErrorCode::permission_denied, "has no CACHEDIR.TAG");
    };
    EXPECT_TRUE(refused(store->publish(make_entry(k_prompt, 1))));
    EXPECT_TRUE(refused(store->publish_image(image_of("more"))));
    EXPECT_TRUE(refused(store->remove(key)));
    EXPECT_TRUE(refused(store->try_record_lock(key)));
    EXPECT_TRUE(refused(store->repair()));
    for (const ClearRequest& request : {ClearRequest{}, ClearRequest{.kinds = {store::ArtifactKind::images}},
                                        ClearRequest{.kinds = {}, .quarantine = true}, ClearRequest::everything()})
        EXPECT_TRUE(refused(store->clear(request)));
    EXPECT_FALSE(store->entry(damaged.header.key));
    store->add_usage(k_decode, {.hits = 1});
    EXPECT_EQ(snapshot(m_root), before);
}

TEST_F(Mark, IsMadeAgainWithAFolderThatWasDeletedMeanwhile)
{
    const auto store = open();
    use(*store);
    fs::remove_all(m_root);
    store->add_usage(k_decode, {.hits = 1});
    EXPECT_TRUE(succeeded(store->clear(store::ClearRequest::everything())));
    EXPECT_FALSE(fs::exists(m_root)) << "counters and clearing make no folder";
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode))));
    EXPECT_THAT(mark(), HasSubstr("warmgraph"));
    open();
}

/// Programs that clean up by age remove the tag, because a hit does not touch it. Or they remove all files.
TEST_F(Mark, IsMadeAgainWhereAllThatIsLeftIsTheLibrarys)
{
    use(*open());
    ASSERT_TRUE(succeeded(open()->prune()));
    write(m_root / k_decode.model_info / k_decode.rank / "decode" / ".lock-0123456789abcdef", "");
    write(m_root / fmt::format("quarantine/{}-{}.wg", k_uuid, k_digest), "bad");
    write(m_root / fmt::format("quarantine/{}-{}.wg.reason", k_uuid, k_digest), "why");
    write(m_root / k_temporary, "");
    fs::remove(m_root / k_tag);
    const EntryKey key = make_entry(k_decode, 0, "", {image_of("code")}).header.key;
    EXPECT_TRUE(open()->entry(key).value());
    EXPECT_THAT(mark(), HasSubstr("made again"));
    const auto store = open();
    fs::remove(m_root / k_tag);
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 1)))) << "also while it is open";
    EXPECT_THAT(mark(), HasSubstr("made again"));

    for (const auto& item : fs::recursive_directory_iterator(m_root))
        if (item.is_regular_file()) fs::remove(item.path());
    use(*open());
    EXPECT_THAT(mark(), HasSubstr("made again"));
}

TEST_F(Mark, IsTouchedByTheFirstUseOfAProcess)
{
    use(*open());
    const auto store = open();
    make_older(m_root / k_tag, std::chrono::hours(480));
    const auto before = fs::last_write_time(m_root / k_tag);
    ASSERT_TRUE(store->entry(make_entry(k_decode, 0, "", {image_of("code")}).header.key).value());
    EXPECT_GT(fs::last_write_time(m_root / k_tag), before);
}

/// mke2fs makes the folder lost+found, which only root may list.
TEST_F(Mark, IsMadeOnAFreshVolume)
{
    fs::create_directories(m_root / "lost+found");
    write(m_root / "lost+found" / "#12345", "");
    use(*open());
    EXPECT_THAT(mark(), HasSubstr("made again"));
    EXPECT_TRUE(fs::exists(m_root / "lost+found" / "#12345"));
    EXPECT_TRUE(succeeded(open()->clear(store::ClearRequest::everything())));
    EXPECT_TRUE(fs::exists(m_root / "lost+found" / "#12345"));
}

/// In a folder that all users may write, any user could make a tag. So the message must not recommend a change of the
/// folder's mode.
TEST_F(Mark, NothingIsProposedToBeDoneToAFolderThatIsNotTheLibrarys)
{
    const auto message = [&](mode_t mode, bool has_tag) {
        fs::remove_all(m_root);
        fs::create_directory(m_root);
        if (has_tag)
            write(m_root / k_tag, "Signature: 8a477f597d28d172789f06886806bc55\n# warmgraph cache folder, made for "
                                  "entry format 1\n");
        EXPECT_EQ(::chmod(m_root.c_str(), mode), 0);
        const auto store = LocalStore::open(m_root);
        EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, "may be written by"));
        return store ? "" : store.error().message;
    };
    for (const auto& [mode, has_tag] : {std::pair(0777, false), {01777, false}, {01777, true}, {0775, false}}) {
        const std::string says = message(static_cast<mode_t>(mode), has_tag);
        EXPECT_THAT(says, HasSubstr("below it, for example " + (m_root / "warmgraph").string())) << mode;
        for (const char* const advice : {"delete", "chmod", "chown", "chgrp"})
            EXPECT_THAT(says, Not(HasSubstr(advice)));
    }
    EXPECT_THAT(message(0777, true), HasSubstr("`chmod go-w " + m_root.string() + "`"));
}

/// `rm -rf cache/*` leaves files whose names begin with a dot.
TEST_F(Mark, IsMadeAgainWhereAShellEmptiedTheFolder)
{
    use(*open());
    ASSERT_TRUE(succeeded(open()->prune()));
    for (const auto& item : fs::directory_iterator(m_root))
        if (!item.path().filename().string().starts_with('.')) fs::remove_all(item.path());
    ASSERT_TRUE(fs::exists(m_root / ".leases"));
    ASSERT_TRUE(fs::exists(m_root / ".prune.lock"));
    use(*open());
    EXPECT_THAT(mark(), HasSubstr("made again"));
}

TEST_F(Mark, IsThereOrTheFolderIsStillEmptyHoweverTheDiskFails)
{
    using Lasts = FaultyFileSystem::Lasts;
    for (const Lasts lasts : {Lasts::once, Lasts::for_ever}) {
        for (std::uint64_t nth = 1;; ++nth) {
            SCOPED_TRACE(fmt::format("operation {} fails", nth));
            fs::remove_all(m_root);
            FaultyFileSystem files;
            files.fail_at(nth, ErrorCode::io_failed, lasts, FaultyFileSystem::Leaves::half_a_file);
            const auto store = LocalStore::open(m_root, {}, files);
            if (files.injected() == 0) {
                EXPECT_GT(nth, 6U) << "hardly anything was made to fail";
                break;
            }
            use(*open());
            EXPECT_THAT(mark(), HasSubstr("made again"));
        }
    }
}

// An earlier version took each of these files for its own.
TEST_F(Mark, DoesNotCoverWhatOthersPutIntoTheFolder)
{
    const auto store = open();
    use(*store);
    const fs::path function = folder().lexically_relative(m_root);
    const std::string quarantined = fmt::format("quarantine/{}-", k_uuid);
    std::vector<fs::path> planted{"usage.json",
                                  ".usage.lock",
                                  ".lock-0123456789abcdef",
                                  ".tmp-mine",
                                  "tmp/.tmp-1-2-3",
                                  "quarantine/mine.txt",
                                  "quarantine/mine.txt.reason",
                                  quarantined + "mine",
                                  quarantined + k_digest + ".wg.bak",
                                  "images/README",
                                  "images/aa/notes",
                                  "images/zz/" + k_digest,
                                  "images/" + k_digest};
    for (const fs::path& parent :
         {fs::path("a/b/c"), fs::path(k_decode.model_info) / "b" / "c",
          fs::path(k_decode.model_info) / k_decode.rank / ".git", fs::path("a") / k_decode.rank / "decode"}) {
        for (const std::string& name : {std::string("usage.json"), std::string(".usage.lock"),
                                        std::string(".lock-0123456789abcdef"), k_temporary, k_digest + ".wg"})
            planted.push_back(parent / name);
    }
    for (const char* name : {".lock-mine", ".lock-0123456789ABCDEF", ".lock-0123456789abcdef0", ".tmp-mine",
                             ".tmp-host.1-boot-17-uuid", "usage.json.bak", "short.wg", "core.1"})
        planted.push_back(function / name);
    for (const fs::path& path : planted) plant(path);
    for (const fs::path& empty : {fs::path("empty"), fs::path("a/b/empty"), fs::path("quarantine/empty"),
                                  fs::path("images/empty"), fs::path(k_decode.model_info) / k_decode.rank / "empty",
                                  fs::path(k_decode.model_info) / "world8global_rank7"})
        fs::create_directories(m_root / empty);
    const auto before = snapshot(m_root);

    flip(path_of(make_entry(k_decode, 0, "", {image_of("code")}).header.key), 250);
    ASSERT_TRUE(succeeded(store->repair()));
    ASSERT_EQ(store->clear(store::ClearRequest::everything()).value().of(store::ArtifactKind::entries).files, 1U);
    ASSERT_TRUE(succeeded(store->repair()));
    auto expected = before;
    for (const auto& gone :
         {function / "usage.json", function / ".usage.lock",
          path_of(make_entry(k_decode).header.key).lexically_relative(m_root),
          path_of(make_entry(k_prompt).header.key).lexically_relative(m_root),
          folder(k_prompt).lexically_relative(m_root), path_of(image_of("code")).lexically_relative(m_root)})
        EXPECT_EQ(expected.erase(gone.string()), 1U) << gone;
    EXPECT_EQ(snapshot(m_root), expected);
}

} // namespace
} // namespace warmgraph::test::mark_test
