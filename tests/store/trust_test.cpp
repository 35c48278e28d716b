// Tests whose folders and files are used. Promise D5: another user of the machine may have put files there.
#include "trust_fixture.hpp"

namespace warmgraph::test::trust_test {
namespace {

using store::Sharing;
using store::StoreMode;

class Trust : public StoreTest {
protected:
    Trust() { m_files.root = m_root; }
    /// Makes a warm cache that belongs to this user.
    void warm()
    {
        const auto store = open();
        ASSERT_TRUE(store->publish_image(m_image).value());
        ASSERT_TRUE(succeeded(store->publish(m_entry)));
    }
    void set_mode(const fs::path& path, mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0); }
    /// Makes `owner` the owner of the root and of everything below it.
    void give_to(std::uint32_t owner)
    {
        m_files.lie = [this, owner](FileInfo& info, const fs::path& path) {
            if (path.native().starts_with(m_root.native())) info.owner = owner;
        };
    }

    /// The settings that sign with a key of this name, and accept this key.
    static cachefmt::Trust trust_of(const std::string& id)
    {
        const std::string secret(64, id == "ours" ? 'a' : 'b');
        return {.sign_with =
                    std::make_shared<const SigningKey>(SigningKey::parse(id + ":hmac-sha256:" + secret).value())};
    }

    LyingFiles m_files;
    Bytes m_image = image_of("device code");
    Entry m_entry = make_entry(k_decode, 0, "", {m_image});
};

TEST_F(Trust, AFolderThatOthersMayWriteIsRefusedWithTheCommandThatCuresIt)
{
    warm();
    for (const mode_t mode : {0777U, 0722U, 0702U}) {
        set_mode(m_root, mode);
        for (const StoreMode access : {StoreMode::read_write, StoreMode::read_only}) {
            for (const bool falls_back : {false, true}) {
                const auto store = LocalStore::open(m_root, {.access = access, .falls_back = falls_back});
                EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, "any user"));
                EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, "`chmod go-w " + m_root.string() + "`"));
            }
        }
    }
    set_mode(m_root, 0720);
    EXPECT_TRUE(failed_with(LocalStore::open(m_root), ErrorCode::permission_denied, "`chmod g-w "));
    set_mode(m_root, 0755);
    EXPECT_EQ(open()->entry(m_entry.header.key).value(), m_entry) << "what others may read is fine";
}

TEST_F(Trust, AFolderBelowThatOthersMayWriteIsNeitherReadNorWritten)
{
    warm();
    for (const fs::path& below : {folder(), folder().parent_path(), folder().parent_path().parent_path()}) {
        SCOPED_TRACE(below);
        set_mode(below, 0777);
        for (const StoreMode access : {StoreMode::read_write, StoreMode::read_only}) {
            const auto store = open({.access = access});
            const std::string cure = "`chmod go-w " + below.string() + "`";
            EXPECT_TRUE(failed_with(store->entry(m_entry.header.key), ErrorCode::permission_denied, cure));
            EXPECT_TRUE(failed_with(store->header(m_entry.header.key), ErrorCode::permission_denied, cure));
            EXPECT_TRUE(failed_with(store->variants(k_decode), ErrorCode::permission_denied, cure));
            if (access == StoreMode::read_only) continue;
            EXPECT_TRUE(failed_with(store->publish(m_entry), ErrorCode::permission_denied, cure));
        }
        set_mode(below, 0700);
    }
    set_mode(path_of(m_image).parent_path(), 0777);
    EXPECT_TRUE(failed_with(open()->image(sha256(m_image)), ErrorCode::permission_denied, "`chmod go-w "));
}

TEST_F(Trust, AFileThatOthersMayWriteIsNotReadAndIsReplacedByTheNextPublish)
{
    warm();
    set_mode(path_of(m_entry.header.key), 0666);
    const auto store = open();
    EXPECT_TRUE(failed_with(store->entry(m_entry.header.key), ErrorCode::permission_denied,
                            "`chmod go-w " + path_of(m_entry.header.key).string() + "`"));
    EXPECT_TRUE(quarantined().empty()) << "it says nothing about its bytes";
    ASSERT_TRUE(succeeded(store->publish(m_entry)));
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    set_mode(path_of(m_image), 0620);
    EXPECT_TRUE(failed_with(store->image(sha256(m_image)), ErrorCode::permission_denied, "`chmod g-w "));
}

TEST_F(Trust, CheckNamesWhatMayNotBeUsedAndLooksOn)
{
    warm();
    ASSERT_TRUE(succeeded(open()->publish(make_entry(k_prompt))));
    set_mode(folder(), 0777);
    set_mode(path_of(make_entry(k_prompt).header.key), 0666);
    const auto damages = take(open({.access = StoreMode::read_only})->check());
    ASSERT_EQ(damages.size(), 2U);
    for (const auto& damage : damages) {
        EXPECT_EQ(damage.error.code, ErrorCode::permission_denied);
        EXPECT_THAT(damage.error.message, HasSubstr("`chmod go-w "));
    }
}

TEST_F(Trust, AStrangersFolderIsRefusedAlsoForRoot)
{
    warm();
    give_to(k_stranger);
    for (const StoreMode access : {StoreMode::read_write, StoreMode::read_only}) {
        const auto store = LocalStore::open(m_root, {.access = access, .falls_back = true}, m_files);
        EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, "belongs to user 4000000001"));
        EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied,
                                fmt::format("`chown {} {}`", ::geteuid(), m_root.string())));
        EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, "WARMGRAPH_TRUSTED_OWNERS"));
    }
}

/// A container image contains a warm cache that another user built.
TEST_F(Trust, ATrustedOwnersFolderIsReadAndNotWritten)
{
    warm();
    give_to(k_stranger);
    const StoreOptions options{.falls_back = true, .trusted_owners = {1, k_stranger}};
    const auto before = snapshot(m_root);
    {
        const auto store = open(options, m_files);
        EXPECT_THAT(store->why_read_only(), HasSubstr("belongs to user 4000000001"));
        EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
        EXPECT_EQ(store->image(sha256(m_image)).value(), m_image);
        EXPECT_TRUE(failed_with(store->publish(m_entry), ErrorCode::permission_denied, "read-only"));
    }
    EXPECT_EQ(snapshot(m_root), before);
    EXPECT_TRUE(failed_with(LocalStore::open(m_root, {.trusted_owners = {k_stranger}}, m_files),
                            ErrorCode::permission_denied, "so it is not written"))
        << "read_write was asked for, and nothing else";
    set_mode(m_root, 0777);
    EXPECT_TRUE(failed_with(LocalStore::open(m_root, options, m_files), ErrorCode::permission_denied, "any user"))
        << "the owner is not the only one";
}

TEST_F(Trust, AFolderOfRootsIsReadByOthers)
{
    warm();
    give_to(0);
    const auto store = open({.falls_back = true}, m_files);
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    // If the test runs as root, root is the owner.
    if (::geteuid() == 0) {
        EXPECT_EQ(store->why_read_only(), "");
    } else {
        EXPECT_THAT(store->why_read_only(), HasSubstr("belongs to user 0"));
    }
}

TEST_F(Trust, AStrangersFileInAnOwnFolderIsNotRead)
{
    warm();
    m_files.lie = [this](FileInfo& info, const fs::path& path) {
        if (path == path_of(m_entry.header.key)) info.owner = k_stranger;
    };
    const auto store = open({}, m_files);
    EXPECT_TRUE(failed_with(store->entry(m_entry.header.key), ErrorCode::permission_denied, "cache file "));
    EXPECT_EQ(store->image(sha256(m_image)).value(), m_image);
    EXPECT_EQ(open({.trusted_owners = {k_stranger}}, m_files)->entry(m_entry.header.key).value(), m_entry);
}

TEST_F(Trust, ASignatureAllowsAnotherOwnerAndNoMore)
{
    warm();
    const Entry unsigned_entry = make_entry(k_prompt);
    const Entry anothers = make_entry(k_decode, 1);
    ASSERT_TRUE(succeeded(open()->publish(unsigned_entry)));
    ASSERT_TRUE(succeeded(open({.trust = trust_of("ours")})->publish(m_entry)));
    ASSERT_TRUE(succeeded(open({.trust = trust_of("theirs")})->publish(anothers)));
    give_to(k_stranger);
    const auto store = open({.falls_back = true, .trust = trust_of("ours")}, m_files);
    EXPECT_FALSE(store->why_read_only().empty());
    EXPECT_EQ(store->entry(m_entry.header.key).value().value().graph, m_entry.graph);
    EXPECT_EQ(store->image(sha256(m_image)).value(), m_image) << "its digest is in the entry";
    EXPECT_TRUE(failed_with(store->entry(unsigned_entry.header.key), ErrorCode::permission_denied, "belongs to user"));
    EXPECT_TRUE(failed_with(store->header(unsigned_entry.header.key), ErrorCode::permission_denied));
    EXPECT_TRUE(failed_with(store->entry(anothers.header.key), ErrorCode::permission_denied, "belongs to user"));
    set_mode(path_of(m_entry.header.key), 0666);
    EXPECT_TRUE(failed_with(store->entry(m_entry.header.key), ErrorCode::permission_denied, "any user"));
}

/// The store caches a header that it has read once, and later queries do not read the file again. The owner must still
/// be accepted.
TEST_F(Trust, ASignatureAllowsAnotherOwnerAsOftenAsItIsAskedFor)
{
    warm();
    ASSERT_TRUE(succeeded(open({.trust = trust_of("ours")})->publish(m_entry)));
    give_to(k_stranger);
    const auto store = open({.falls_back = true, .trust = trust_of("ours")}, m_files);
    for (int again = 0; again < 3; ++again) {
        EXPECT_TRUE(succeeded(store->header(m_entry.header.key))) << again;
        const auto variants = store->variants(k_decode);
        ASSERT_TRUE(succeeded(variants)) << again;
        EXPECT_TRUE(variants->at(0).header) << again;
    }
}

/// For the other kinds, readers cannot check a signature.
TEST_F(Trust, AKeyAllowsAnotherOwnersEntriesAndNoOtherKind)
{
    using store::ArtifactKind;
    const Digest digest = sha256(as_bytes("of a program"));
    const std::vector<store::Name> names = {
        store::ArtifactName{ArtifactKind::compiled, digest}, store::ArtifactName{ArtifactKind::tuned, digest},
        store::ArtifactName{ArtifactKind::tuned, digest, store::k_module_form},
        store::ArtifactName{ArtifactKind::profiles, digest}, store::ArtifactName{ArtifactKind::torch, digest}};
    for (const store::Name& name : names) ASSERT_TRUE(succeeded(open()->tier().put(name, as_bytes("made by them"))));
    give_to(k_stranger);
    for (const bool requires_signatures : {false, true}) {
        cachefmt::Trust trust = trust_of("ours");
        trust.require = requires_signatures;
        const auto store = open({.falls_back = true, .trust = trust}, m_files);
        for (const store::Name& name : names)
            for (const store::ReadLimit extent : {store::ReadLimit{1 << 20, true}, store::ReadLimit{4, false}})
                EXPECT_TRUE(failed_with(store->tier().get(name, extent), ErrorCode::permission_denied,
                                        "belongs to user 4000000001"))
                    << to_text(name);
    }
    const auto trusting = open({.falls_back = true, .trusted_owners = {k_stranger}}, m_files);
    for (const store::Name& name : names) EXPECT_TRUE(trusting->tier().get(name, {1 << 20}).value()) << to_text(name);
}

/// As after `ln secret cache/.leases`, before the library made a file with this name.
TEST_F(Trust, AFileThatALockFilesNameLeadsToKeepsItsModeAndContent)
{
    const fs::path secret = m_dir.path() / "secret";
    for (const char* name : {".leases", ".prune.lock"}) {
        fs::create_directory(m_root);
        write(secret, "mine");
        set_mode(secret, 0644);
        fs::create_hard_link(secret, m_root / name);
        {
            const auto store = open({.budget = {.bytes = 1}});
            ASSERT_TRUE(succeeded(store->publish(m_entry)));
            ASSERT_TRUE(succeeded(store->prune({.bytes = 0})));
        }
        EXPECT_EQ(fs::status(secret).permissions(), fs::perms{0644}) << name;
        EXPECT_EQ(text_of(secret), "mine") << name;
        fs::remove_all(m_root);
    }
}

TEST_F(Trust, AFolderOfAGroupThatTheProcessLacksIsRefused)
{
    ASSERT_TRUE(succeeded(LocalStore::open(m_root, {.sharing = Sharing::group})));
    m_files.lie = [this](FileInfo& info, const fs::path& path) {
        if (path.native().starts_with(m_root.native())) info.group = k_stranger;
    };
    const auto store = LocalStore::open(m_root, {.sharing = Sharing::group}, m_files);
    EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, "is of group 4000000001, expected one of"));
    EXPECT_TRUE(
        failed_with(store, ErrorCode::permission_denied, fmt::format("`chgrp {} {}`", ::getegid(), m_root.string())));
}

TEST_F(Trust, SharedFilesCarryTheFoldersGroupAndOthersMayNotWriteThem)
{
    const StoreOptions shared{.sharing = Sharing::group};
    ASSERT_TRUE(succeeded(open(shared)->publish(m_entry)));
    // A file of another member of the group: it has another owner, and the group of the folder.
    give_to(k_stranger);
    EXPECT_EQ(open(shared, m_files)->entry(m_entry.header.key).value(), m_entry);
    EXPECT_EQ(open(shared, m_files)->why_read_only(), "");
    m_files.lie = [this](FileInfo& info, const fs::path& path) {
        if (path == path_of(m_entry.header.key)) info.group = k_stranger;
    };
    EXPECT_TRUE(failed_with(open(shared, m_files)->entry(m_entry.header.key), ErrorCode::permission_denied,
                            "is of group 4000000001"));
    m_files.lie = [](FileInfo&, const fs::path&) {};
    set_mode(path_of(m_entry.header.key), 0666);
    EXPECT_TRUE(failed_with(open(shared)->entry(m_entry.header.key), ErrorCode::permission_denied, "`chmod o-w "));
    set_mode(m_root, 02777);
    EXPECT_TRUE(failed_with(LocalStore::open(m_root, shared), ErrorCode::permission_denied, "`chmod o-w "));
    set_mode(m_root, 02770);
    EXPECT_TRUE(failed_with(LocalStore::open(m_root), ErrorCode::permission_denied, "share_with_group"))
        << "without being asked to share, group members are others";
}

TEST_F(Trust, AFileInAFolderWithAnotherGroupGetsThatGroup)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give a folder any group (root)");
    ASSERT_TRUE(fs::create_directory(m_root));
    ASSERT_EQ(::chown(m_root.c_str(), 0, 4242), 0);
    set_mode(m_root, 0770); // as if it was made by hand, without the set-group-id bit
    const auto group_of = [](const fs::path& path) {
        struct stat status{};
        EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
        return status.st_gid;
    };
    EXPECT_TRUE(succeeded(posix_file_system().make_directories(m_root / "below", 02770)));
    EXPECT_TRUE(succeeded(posix_file_system().write_new(m_root / "below" / "file", {}, 0660)));
    EXPECT_TRUE(succeeded(posix_file_system().write_new(m_root / "private", {}, 0600)));
    EXPECT_EQ(group_of(m_root / "below"), 4242U);
    EXPECT_EQ(group_of(m_root / "below" / "file"), 4242U);
    EXPECT_EQ(group_of(m_root / "private"), ::getegid()) << "its group may do nothing with it";
}

TEST_F(Trust, LinksInTheFolderLeadNowhere)
{
    warm();
    // The same cache, but reached through a link below the root. Such a link may lead to another user's folder, or may
    // change.
    const fs::path moved = m_dir.path() / "moved";
    fs::rename(m_root / k_decode.model_info, moved);
    fs::create_directory_symlink(moved, m_root / k_decode.model_info);
    const auto before = snapshot(moved);
    const auto store = open();
    EXPECT_FALSE(store->entry(m_entry.header.key));
    EXPECT_FALSE(store->publish(m_entry));
    EXPECT_FALSE(store->try_record_lock(m_entry.header.key));
    store->add_usage(k_decode, {.hits = 1});
    EXPECT_TRUE(succeeded(store->clear(store::ClearRequest::everything())));
    EXPECT_EQ(snapshot(moved), before);
    EXPECT_TRUE(fs::is_symlink(m_root / k_decode.model_info)) << "it is none of the library's";
}

TEST_F(Trust, TheFolderIsTheOneThatWasOpenedWhateverItsPathSaysLater)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(store->publish(m_entry)));
    const fs::path elsewhere = m_dir.path() / "elsewhere";
    const fs::path trap = m_dir.path() / "trap";
    fs::rename(m_root, elsewhere);
    fs::create_directory(trap);
    fs::create_directory_symlink(trap, m_root);
    EXPECT_EQ(store->entry(m_entry.header.key).value(), m_entry);
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
    EXPECT_TRUE(fs::is_empty(trap));
    EXPECT_TRUE(fs::exists(elsewhere / k_prompt.model_info / k_prompt.rank / k_prompt.function));
}

TEST_F(Trust, AFolderWithoutAnyRightIsPermissionDeniedAndDoesNoHarm)
{
    warm();
    if (::geteuid() == 0) {
        ASSERT_EQ(::chmod(m_dir.path().c_str(), 0755), 0);
        ASSERT_EQ(::chown(m_root.c_str(), 65534, 65534), 0);
    }
    set_mode(m_root, 0);
    EXPECT_TRUE(as_ordinary_user([&] {
        for (const StoreMode access : {StoreMode::read_write, StoreMode::read_only})
            if (!failed_with(LocalStore::open(m_root, {.access = access, .falls_back = true}),
                             ErrorCode::permission_denied, m_root.string()))
                return false;
        return true;
    }));
    set_mode(m_root, 0700);
}

/// A container image contains a warm cache that root built.
TEST_F(Trust, AnImagesFolderOfRootsIsReadByAnOrdinaryUser)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to make a folder of root's (root)");
    warm();
    set_mode(m_dir.path(), 0755);
    for (const auto& item : fs::recursive_directory_iterator(m_root)) set_mode(item, item.is_directory() ? 0755 : 0644);
    set_mode(m_root, 0755);
    const auto before = snapshot(m_root);
    EXPECT_TRUE(as_ordinary_user([&] {
        const auto opened = LocalStore::open(m_root, {.falls_back = true});
        return succeeded(opened) && (*opened)->why_read_only().contains("belongs to user 0") &&
               (*opened)->entry(m_entry.header.key).value() == m_entry &&
               (*opened)->image(sha256(m_image)).value() == m_image &&
               failed_with(LocalStore::open(m_root), ErrorCode::permission_denied, "belongs to user 0");
    }));
    EXPECT_EQ(snapshot(m_root), before);
    set_mode(path_of(m_entry.header.key), 0600);
    EXPECT_TRUE(as_ordinary_user([&] {
        const auto opened = LocalStore::open(m_root, {.falls_back = true});
        return succeeded(opened) && failed_with((*opened)->entry(m_entry.header.key), ErrorCode::permission_denied);
    }));
    set_mode(m_root, 01777); // any user may have put an entry there
    EXPECT_TRUE(as_ordinary_user([&] {
        return failed_with(LocalStore::open(m_root, {.falls_back = true}), ErrorCode::permission_denied, "any user");
    }));
}

/// One folder cannot be listed. The other functions must still be shown. But it is not known which images the hidden
/// entries need.
TEST_F(Trust, AFolderThatMayNotBeListedIsLeftOut)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give files away (root)");
    warm();
    const FunctionKey other{"other_static_clgraphcache_0123456789ab", "world1global_rank0", "decode"};
    ASSERT_TRUE(succeeded(open()->publish(make_entry(other))));
    set_mode(m_dir.path(), 0755);
    for (const auto& item : fs::recursive_directory_iterator(m_root))
        ASSERT_EQ(::chown(item.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown(m_root.c_str(), 65534, 65534), 0);
    set_mode(m_root / other.model_info, 0);
    EXPECT_TRUE(as_ordinary_user([&] {
        const auto opened = LocalStore::open(m_root);
        if (!succeeded(opened)) return false;
        make_older(path_of(m_image), std::chrono::minutes(60));
        const auto pruned = (*opened)->prune({.bytes = 0});
        return failed_with((*opened)->functions(), ErrorCode::permission_denied) && succeeded(pruned) &&
               pruned->removed.of(store::ArtifactKind::entries).files == 1 &&
               pruned->removed.of(store::ArtifactKind::images).files == 0;
    }));
}

/// Root reads the trusted folder of an ordinary user, but must not write into it.
TEST_F(Trust, AMissIsNotedInNobodyElsesFolder)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give files away (root)");
    warm();
    for (const auto& item : fs::recursive_directory_iterator(m_root))
        ASSERT_EQ(::chown(item.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown(m_root.c_str(), 65534, 65534), 0);
    const auto before = snapshot(m_root);
    const auto store = take(LocalStore::open(m_root, {.access = StoreMode::read_only, .trusted_owners = {65534}}));
    store->note_miss(m_entry.header.key.function, {}, "{}");
    EXPECT_EQ(snapshot(m_root), before);
}

/// Tests the same with several members of a group, and with the real answers of the kernel.
TEST_F(Trust, AFolderOfAGroupIsSharedByItsMembersAndNobodyElse)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to become a member of any group (root)");
    constexpr gid_t k_team = 4242;
    constexpr uid_t k_writer = 65533, k_reader = 65532;
    set_mode(m_dir.path(), 0755);
    ASSERT_TRUE(fs::create_directory(m_root));
    ASSERT_EQ(::chown(m_root.c_str(), k_writer, k_team), 0);
    set_mode(m_root, 02770);
    const StoreOptions shared{.sharing = Sharing::group, .falls_back = true};
    const auto as_member = [&](uid_t user, gid_t group, auto body) {
        ChildProcess child([&] {
            if (::setgroups(1, &group) != 0 || ::setegid(user) != 0 || ::seteuid(user) != 0) return 2;
            return body() ? 0 : 1;
        });
        return child.wait() == 0;
    };
    EXPECT_TRUE(as_member(k_writer, k_team, [&] { return succeeded(open(shared)->publish(m_entry)); }));
    EXPECT_TRUE(as_member(k_reader, k_team, [&] {
        const auto store = open(shared);
        return store->entry(m_entry.header.key).value() == m_entry && succeeded(store->publish(make_entry(k_prompt)));
    }));
    EXPECT_TRUE(as_member(k_reader, 4243,
                          [&] { return failed_with(LocalStore::open(m_root, shared), ErrorCode::permission_denied); }));
    EXPECT_TRUE(as_member(k_reader, k_team, [&] {
        return failed_with(LocalStore::open(m_root), ErrorCode::permission_denied, "belongs to user 65533");
    })) << "who does not ask for sharing";
    set_mode(m_root, 02777);
    EXPECT_TRUE(as_member(k_reader, k_team, [&] {
        return failed_with(LocalStore::open(m_root, shared), ErrorCode::permission_denied, "`chmod o-w ");
    }));
}

} // namespace
} // namespace warmgraph::test::trust_test
