// Cache folders that cannot be used: each leads to a clear error with the cure.
#include <sys/stat.h>
#include <unistd.h>

#include "child_process.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test::open_test {
namespace {

using store::Sharing;
using store::StoreMode;

class Open : public StoreTest {};

TEST_F(Open, MakesTheFolderWithItsParents)
{
    m_root = m_dir.path() / "a" / "b" / "cache";
    EXPECT_EQ(open()->root(), m_root);
    EXPECT_TRUE(fs::is_directory(m_root));
    EXPECT_TRUE(names_in(m_root).empty()) << "the probe is gone";
}

TEST_F(Open, AFileIsRefusedWithTheCure)
{
    write(m_root, "text");
    for (const StoreMode access : {StoreMode::read_write, StoreMode::read_only}) {
        const auto store = LocalStore::open(m_root, {.access = access});
        EXPECT_TRUE(failed_with(store, ErrorCode::io_failed, m_root.string() + " is a file, expected a folder"));
        EXPECT_TRUE(failed_with(store, ErrorCode::io_failed, "WARMGRAPH_CACHE_DIR"));
    }
    EXPECT_TRUE(failed_with(LocalStore::open(m_root / "below"), ErrorCode::io_failed, "Not a directory"));
    EXPECT_EQ(snapshot(m_dir.path()).at("cache"), "text");
}

TEST_F(Open, ALinkToAFolderIsFollowedAndADanglingOneRefused)
{
    fs::create_directory(m_dir.path() / "disk");
    fs::create_directory_symlink("disk", m_root);
    EXPECT_EQ(open()->root(), fs::canonical(m_dir.path() / "disk"));
    fs::remove_all(m_dir.path() / "disk");
    EXPECT_FALSE(LocalStore::open(m_root));
}

TEST_F(Open, NamesThatCannotBeFoldersAreInvalid)
{
    using namespace std::string_literals;
    EXPECT_TRUE(failed_with(LocalStore::open(""), ErrorCode::invalid_argument, "empty"));
    EXPECT_TRUE(failed_with(LocalStore::open(m_dir.path() / "a\0b"s), ErrorCode::invalid_argument, "NUL"));
    EXPECT_TRUE(failed_with(LocalStore::open(m_dir.path() / std::string(300, 'n')), ErrorCode::io_failed, "too long"));
}

/// Runs `body` as another user than root, because root may write anywhere.
template <class Body>
void as_ordinary_user(Body body)
{
    ChildProcess child([&] {
        if (::geteuid() == 0 && ::seteuid(65534) != 0) return 2;
        return body() ? 0 : 1;
    });
    EXPECT_EQ(child.wait(), 0);
}

TEST_F(Open, AFolderThatIsNotWritableIsPermissionDenied)
{
    fs::create_directory(m_root);
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(m_root.c_str(), 65534, 65534), 0);
        ASSERT_EQ(::chmod(m_dir.path().c_str(), 0755), 0);
    }
    ASSERT_EQ(::chmod(m_root.c_str(), 0555), 0);
    as_ordinary_user([&] {
        const auto store = LocalStore::open(m_root);
        return failed_with(store, ErrorCode::permission_denied, "is not writable") &&
               failed_with(store, ErrorCode::permission_denied, m_root.string()) &&
               failed_with(LocalStore::open(m_root / "below"), ErrorCode::permission_denied, "WARMGRAPH_CACHE_DIR");
    });
    ASSERT_EQ(::chmod(m_root.c_str(), 0755), 0);
}

TEST_F(Open, AReadOnlyFileSystemIsPermissionDeniedAlsoForRoot)
{
    fs::create_directory(m_root);
    FaultyFileSystem files;
    files.fail_all("lock", ErrorCode::permission_denied); // makes the library's probe fail
    EXPECT_TRUE(failed_with(LocalStore::open(m_root, {}, files), ErrorCode::permission_denied, "is not writable"));
    EXPECT_TRUE(succeeded(LocalStore::open(m_root, {.access = StoreMode::read_only}, files)));
}

TEST_F(Open, WhatCannotBeWrittenIsReadWhereThatIsAskedFor)
{
    ASSERT_TRUE(LocalStore::open(m_root)); // makes the folder with its tag
    for (const ErrorCode code : {ErrorCode::permission_denied, ErrorCode::no_space}) {
        FaultyFileSystem counting;
        ASSERT_TRUE(LocalStore::open(m_root, {.falls_back = true}, counting));
        bool fell_back = false;
        for (std::uint64_t nth = 1; nth <= counting.operations(); ++nth) {
            FaultyFileSystem files;
            files.fail_at(nth, code);
            const auto store = LocalStore::open(m_root, {.falls_back = true}, files);
            if (!store || (*store)->why_read_only().empty()) continue;
            fell_back = true;
            EXPECT_NE((*store)->why_read_only().find(m_root.string()), std::string::npos);
            EXPECT_TRUE(succeeded((*store)->functions()));
            EXPECT_TRUE(failed_with((*store)->publish_image({}), ErrorCode::permission_denied, ""))
                << "it is read-only";
        }
        EXPECT_TRUE(fell_back);
    }
    const auto store = LocalStore::open(m_root, {.falls_back = true});
    ASSERT_TRUE(store);
    EXPECT_EQ((*store)->why_read_only(), "");
}

TEST_F(Open, AFolderWithoutTheMarkIsNotReadInsteadOfBeingWritten)
{
    fs::create_directory(m_root);
    FaultyFileSystem files;
    files.fail_all("lock", ErrorCode::permission_denied); // makes the library's probe fail
    EXPECT_TRUE(failed_with(LocalStore::open(m_root, {.falls_back = true}, files), ErrorCode::permission_denied,
                            "is not writable"));
}

/// A folder that belongs to another user. As root, the test gives `own` away; otherwise this is a folder of root.
fs::path foreign_folder(const fs::path& own)
{
    if (::geteuid() != 0) return "/usr";
    fs::create_directory(own);
    if (::chown(own.c_str(), 65534, 65534) != 0) throw std::runtime_error("chown failed");
    return own;
}

TEST_F(Open, AFolderOfAnotherUserIsPermissionDenied)
{
    const fs::path root = foreign_folder(m_root);
    const auto store = LocalStore::open(root);
    EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, root.string() + " belongs to user "));
    EXPECT_TRUE(failed_with(store, ErrorCode::permission_denied, "share_with_group"));
    if (::geteuid() != 0) return;
    EXPECT_TRUE(failed_with(LocalStore::open(root, {.access = StoreMode::read_only}), ErrorCode::permission_denied));
    EXPECT_TRUE(failed_with(LocalStore::open(root, {.sharing = Sharing::group}), ErrorCode::permission_denied,
                            "is of group 65534"));
    ASSERT_EQ(::chown(root.c_str(), 65534, ::getegid()), 0);
    EXPECT_TRUE(succeeded(LocalStore::open(root, {.sharing = Sharing::group})));
}

TEST_F(Open, AFolderOfRootMayBeReadByAnyone)
{
    as_ordinary_user([&] {
        return failed_with(LocalStore::open("/usr"), ErrorCode::permission_denied) &&
               succeeded(LocalStore::open("/usr", {.access = StoreMode::read_only}));
    });
}

TEST_F(Open, ReadOnlyNeedsAFolderThatIsThereAndMakesNone)
{
    EXPECT_TRUE(
        failed_with(LocalStore::open(m_root, {.access = StoreMode::read_only}), ErrorCode::not_found, m_root.string()));
    EXPECT_FALSE(fs::exists(m_root));
}

TEST_F(Open, ReadOnlyReadsEverythingAndChangesNothing)
{
    const Bytes good = image_of("good");
    const Bytes bad = image_of("bad");
    const Entry entry = make_entry(k_decode);
    const Entry damaged = make_entry(k_decode, 1);
    {
        const auto store = open();
        ASSERT_TRUE(succeeded(store->publish(entry)));
        ASSERT_TRUE(succeeded(store->publish(damaged)));
        ASSERT_TRUE(store->publish_image(good).value());
        ASSERT_TRUE(store->publish_image(bad).value());
        store->add_usage(k_decode, {.hits = 3});
    }
    flip(path_of(damaged.header.key), 100);
    flip(path_of(bad), 1);
    make_older(path_of(entry.header.key), std::chrono::hours(1));
    const auto before = snapshot(m_root);
    const auto time = fs::last_write_time(path_of(entry.header.key));
    {
        const auto store = open({.access = StoreMode::read_only});
        EXPECT_EQ(store->entry(entry.header.key).value(), entry);
        EXPECT_FALSE(store->entry(damaged.header.key));
        EXPECT_EQ(store->image(sha256(good)).value(), good);
        EXPECT_FALSE(store->image(sha256(bad)).value());
        EXPECT_EQ(store->usage(k_decode).hits, 3U);
        EXPECT_EQ(store->check().value().size(), 2U);
        store->add_usage(k_decode, {.hits = 1});
        EXPECT_TRUE(failed_with(store->publish(entry), ErrorCode::permission_denied, "read-only"));
        EXPECT_TRUE(failed_with(store->publish_image(good), ErrorCode::permission_denied, "read-only"));
        EXPECT_TRUE(failed_with(store->remove(entry.header.key), ErrorCode::permission_denied, "read-only"));
        EXPECT_TRUE(failed_with(store->try_record_lock(entry.header.key), ErrorCode::permission_denied, "read-only"));
        EXPECT_TRUE(failed_with(store->repair(), ErrorCode::permission_denied, "read-only"));
        EXPECT_TRUE(failed_with(store->clear(), ErrorCode::permission_denied, "read-only"));
        EXPECT_TRUE(succeeded(store->plan_clear(store::ClearRequest::everything())));
    }
    EXPECT_EQ(snapshot(m_root), before);
    EXPECT_EQ(fs::last_write_time(path_of(entry.header.key)), time);
}

} // namespace
} // namespace warmgraph::test::open_test
