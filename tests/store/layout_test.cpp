// Where files are on the disk, and with which modes. Also, how they are read back.
#include <sys/stat.h>

#include "store_fixture.hpp"

namespace warmgraph::test::layout_test {
namespace {

class Layout : public StoreTest {
protected:
    static std::uint32_t mode_of(const fs::path& path) { return (*posix_file_system().info(path))->mode; }
};

TEST_F(Layout, IsExactlyTheDocumentedOne)
{
    const auto store = open();
    const Bytes image = image_of("device code");
    const Entry entry = make_entry(k_decode, 0, "", {image});
    EXPECT_TRUE(store->publish_image(image).value());
    EXPECT_TRUE(succeeded(store->publish(entry)));
    store->add_usage(k_decode, {.hits = 1});

    const std::string function = k_decode.model_info + "/" + k_decode.rank + "/" + k_decode.function;
    const std::string hex = to_hex(sha256(image));
    std::vector<std::string> paths;
    for (const auto& [path, content] : snapshot(m_root)) {
        if (content != "(folder)") paths.push_back(path);
    }
    EXPECT_THAT(paths, UnorderedElementsAre("CACHEDIR.TAG", ".leases", "images/" + hex.substr(0, 2) + "/" + hex,
                                            function + "/" + to_hex(entry.header.key.guards_digest) + ".wg",
                                            function + "/usage.json", function + "/.usage.lock"));
    EXPECT_EQ(snapshot(m_root)["images/" + hex.substr(0, 2) + "/" + hex], "device code");
}

TEST_F(Layout, IsForTheOwnerOnly)
{
    const mode_t old = ::umask(0);
    const auto store = open();
    const Bytes image = image_of("code");
    EXPECT_TRUE(store->publish_image(image).value());
    EXPECT_TRUE(succeeded(store->publish(make_entry(k_decode))));
    store->add_usage(k_decode, {.hits = 1});
    ::umask(old);
    EXPECT_EQ(mode_of(m_root), 0700U);
    for (const auto& item : fs::recursive_directory_iterator(m_root)) {
        EXPECT_EQ(mode_of(item.path()), item.is_directory() ? 0700U : 0600U) << item.path();
    }
}

TEST_F(Layout, IsForTheGroupWhenShared)
{
    const mode_t old = ::umask(077);
    const auto store = open({.sharing = store::Sharing::group});
    const Bytes image = image_of("code");
    EXPECT_TRUE(store->publish_image(image).value());
    EXPECT_TRUE(succeeded(store->publish(make_entry(k_decode))));
    const auto lock = store->try_record_lock(make_entry(k_decode).header.key);
    store->add_usage(k_decode, {.hits = 1});
    ::umask(old);
    EXPECT_EQ(mode_of(m_root), 02770U);
    for (const auto& item : fs::recursive_directory_iterator(m_root)) {
        EXPECT_EQ(mode_of(item.path()), item.is_directory() ? 02770U : 0660U) << item.path();
    }
}

TEST_F(Layout, BringsBackWhatWasPublished)
{
    const auto store = open();
    const Entry entry = make_entry(k_decode, 7, "bitwise", {image_of("code")});
    EXPECT_FALSE(store->entry(entry.header.key).value());
    EXPECT_FALSE(store->header(entry.header.key).value());
    ASSERT_TRUE(succeeded(store->publish(entry)));
    EXPECT_EQ(*store->header(entry.header.key).value(), entry.header);
    EXPECT_EQ(store->entry(entry.header.key).value(), entry);
    EXPECT_EQ(open()->entry(entry.header.key).value(), entry) << "a second store sees it too";
    ASSERT_TRUE(succeeded(store->remove(entry.header.key)));
    EXPECT_FALSE(store->entry(entry.header.key).value());
    EXPECT_TRUE(succeeded(store->remove(entry.header.key))) << "removing what is gone is no failure";
}

TEST_F(Layout, BringsBackATombstone)
{
    const auto store = open();
    Entry entry = make_entry(k_decode);
    entry.header.kind = cachefmt::EntryKind::tombstone;
    entry.header.info.reason = "recompiled";
    entry.header.info.difference = {"node 0: fill of 4 bytes against 8"};
    entry.graph = {};
    ASSERT_TRUE(succeeded(store->publish(entry)));
    EXPECT_EQ(store->entry(entry.header.key).value(), entry);
}

TEST_F(Layout, AnEntryOfTheSameKeyIsReplaced)
{
    const auto store = open();
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 0, "first"))));
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, 0, "second"))));
    EXPECT_EQ((*store->entry(make_entry(k_decode).header.key))->header.info.verification, "second");
    EXPECT_EQ(names_in(folder()).size(), 1U);
}

TEST_F(Layout, AHeaderLongerThanTheFirstReadComesBackWhole)
{
    const auto store = open();
    Entry entry = make_entry(k_decode);
    for (int i = 0; i < 5000; ++i)
        entry.header.guards.facts.push_back({fmt::format("env.V{:05}", i), "value", cachefmt::Role::must_match});
    entry.header.key.guards_digest = cachefmt::guards_digest(entry.header.guards);
    ASSERT_TRUE(succeeded(store->publish(entry)));
    EXPECT_GT(fs::file_size(path_of(entry.header.key)), 65'536U);
    EXPECT_EQ(*store->header(entry.header.key).value(), entry.header);
}

TEST_F(Layout, ListsFunctionsAndVariants)
{
    const auto store = open();
    EXPECT_TRUE(store->functions().value().empty());
    EXPECT_TRUE(store->variants(k_decode).value().empty());
    for (const int variant : {0, 1, 2}) ASSERT_TRUE(succeeded(store->publish(make_entry(k_decode, variant))));
    ASSERT_TRUE(succeeded(store->publish(make_entry(k_prompt))));
    EXPECT_THAT(store->functions().value(), ElementsAre(k_decode, k_prompt));
    const auto variants = store->variants(k_decode).value();
    ASSERT_EQ(variants.size(), 3U);
    for (std::size_t i = 0; i < variants.size(); ++i) {
        ASSERT_TRUE(succeeded(variants[i].header));
        EXPECT_EQ(variants[i].header->key.guards_digest, variants[i].guards_digest);
        EXPECT_EQ(variants[i].size, fs::file_size(path_of(variants[i].header->key)));
        EXPECT_LT(std::chrono::system_clock::now() - variants[i].last_used, std::chrono::hours(1));
        if (i > 0) {
            EXPECT_LT(variants[i - 1].guards_digest, variants[i].guards_digest);
        }
    }
}

TEST_F(Layout, ImagesAreSharedByTheirDigest)
{
    const auto store = open();
    const Bytes image = image_of("code");
    EXPECT_FALSE(store->image(sha256(image)).value());
    EXPECT_TRUE(store->publish_image(image).value());
    make_older(path_of(image), std::chrono::hours(2));
    EXPECT_FALSE(store->publish_image(image).value()) << "it is there already";
    EXPECT_GT(fs::last_write_time(path_of(image)), fs::file_time_type::clock::now() - std::chrono::hours(1))
        << "and counts as new";
    EXPECT_EQ(store->image(sha256(image)).value(), image);
    EXPECT_THAT(store->images().value(), ElementsAre(std::pair(sha256(image), std::uint64_t{4})));
}

TEST_F(Layout, AnImageOverTheCapIsNeitherWrittenNorRead)
{
    const auto store = open({.image_bytes = 8});
    EXPECT_TRUE(failed_with(store->publish_image(image_of("nine bytes")), ErrorCode::unsupported, "at most 8"));
    EXPECT_TRUE(names_in(m_root).empty());
}

TEST_F(Layout, AHitCountsAsUseAndAHeaderDoesNot)
{
    const auto store = open();
    const Entry entry = make_entry(k_decode);
    ASSERT_TRUE(succeeded(store->publish(entry)));
    make_older(path_of(entry.header.key), std::chrono::hours(2));
    const auto before = fs::last_write_time(path_of(entry.header.key));
    EXPECT_TRUE(store->header(entry.header.key).value());
    EXPECT_EQ(fs::last_write_time(path_of(entry.header.key)), before);
    EXPECT_TRUE(store->entry(entry.header.key).value());
    EXPECT_GT(fs::last_write_time(path_of(entry.header.key)), before + std::chrono::hours(1));
}

TEST_F(Layout, ARelativeFolderStaysWhereItWasAfterChdir)
{
    const fs::path old = fs::current_path();
    fs::current_path(m_dir.path());
    auto store = LocalStore::open("cache/./below/");
    fs::current_path("/");
    ASSERT_TRUE(succeeded(store));
    EXPECT_EQ((*store)->root(), fs::canonical(m_dir.path()) / "cache" / "below");
    EXPECT_TRUE(succeeded((*store)->publish(make_entry(k_decode))));
    fs::current_path(old);
    EXPECT_TRUE(fs::exists(m_dir.path() / "cache" / "below" / k_decode.model_info));
}

TEST_F(Layout, ARecordingIsLockedForOneAndLeavesNothing)
{
    const auto store = open();
    const auto second = open();
    const EntryKey key = make_entry(k_decode).header.key;
    auto lock = store->try_record_lock(key).value();
    ASSERT_NE(lock, nullptr);
    EXPECT_THAT(names_in(folder()), ElementsAre(".lock-" + to_hex(key.guards_digest).substr(0, 16)));
    EXPECT_EQ(second->try_record_lock(key).value(), nullptr);
    EXPECT_NE(second->try_record_lock(make_entry(k_decode, 1).header.key).value(), nullptr)
        << "another variant is free";
    lock.reset();
    EXPECT_TRUE(names_in(folder()).empty());
    EXPECT_NE(second->try_record_lock(key).value(), nullptr);
}

} // namespace
} // namespace warmgraph::test::layout_test
