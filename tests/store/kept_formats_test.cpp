// Promise P9: entries of older formats, which older versions wrote (tests/cachefmt/kept). Each is a clean miss with a
// reason, and a new recording replaces it.
#include "store_fixture.hpp"

namespace warmgraph::test::kept_formats_test {
namespace {

const fs::path k_kept = WARMGRAPH_KEPT_ENTRIES;

class KeptFormats : public StoreTest, public testing::WithParamInterface<int> {
protected:
    void SetUp() override
    {
        fs::remove_all(m_root);
        static_cast<void>(open()); // makes the folder with its tag
        fs::copy(folder(), m_root, fs::copy_options::recursive);
    }
    static fs::path folder() { return k_kept / ("format" + std::to_string(GetParam())); }
    static std::string reason()
    {
        return "entry has format " + std::to_string(GetParam()) + ", this warmgraph reads " +
               std::to_string(cachefmt::k_format_version);
    }
    std::vector<EntryKey> keys(const LocalStore& store)
    {
        std::vector<EntryKey> found;
        const auto functions = store.functions().value();
        for (const FunctionKey& function : functions) {
            const auto variants = store.variants(function).value();
            for (const store::Variant& variant : variants) found.push_back({function, variant.guards_digest});
        }
        return found;
    }
};

TEST_P(KeptFormats, AreMissesWithTheReasonForWhoOnlyReads)
{
    const auto store = open({.access = store::StoreMode::read_only});
    const auto before = snapshot(m_root);
    const auto all = keys(*store);
    ASSERT_FALSE(all.empty());
    for (const EntryKey& key : all) {
        EXPECT_TRUE(failed_with(store->header(key), ErrorCode::stale, reason()));
        EXPECT_TRUE(failed_with(store->entry(key), ErrorCode::stale, reason()));
    }
    const auto damages = store->check().value();
    for (const auto& damage : damages) {
        EXPECT_EQ(damage.error.code, ErrorCode::stale);
        EXPECT_THAT(damage.error.message, HasSubstr(reason()));
    }
    EXPECT_EQ(damages.size(), all.size());
    EXPECT_EQ(snapshot(m_root), before);
}

TEST_P(KeptFormats, AreSetAsideByWhoWrites)
{
    const auto store = open();
    for (const EntryKey& key : keys(*store)) {
        EXPECT_TRUE(failed_with(store->entry(key), ErrorCode::stale, reason()));
        EXPECT_FALSE(store->entry(key).value()) << "now it is a plain miss";
    }
    EXPECT_TRUE(store->check().value().empty());
    EXPECT_FALSE(quarantined().empty());
}

INSTANTIATE_TEST_SUITE_P(Format, KeptFormats, testing::Values(1, 2, 3, 4));

/// An entry with forward and backward of a pair in one graph, in a format that can be read.
class KeptJoinedPair : public StoreTest {
protected:
    void SetUp() override
    {
        fs::remove_all(m_root);
        static_cast<void>(open());
        fs::copy(k_kept / "joined_pair", m_root, fs::copy_options::recursive);
        const auto store = open();
        m_function = store->functions().value().at(0);
        m_key = {m_function, store->variants(m_function).value().at(0).guards_digest};
    }
    FunctionKey m_function;
    EntryKey m_key;
    static constexpr const char* k_why = "forward and backward of a pair in one graph";
};

TEST_F(KeptJoinedPair, IsStaleWithTheReasonAndStillReadable)
{
    const auto store = open({.access = store::StoreMode::read_only});
    EXPECT_TRUE(failed_with(store->header(m_key), ErrorCode::stale, k_why));
    EXPECT_TRUE(failed_with(store->entry(m_key), ErrorCode::stale, k_why));
    const auto variants = store->variants(m_function).value();
    ASSERT_FALSE(variants.at(0).header);
    EXPECT_EQ(variants.at(0).header.error().code, ErrorCode::stale);
    const auto damages = store->check().value();
    ASSERT_EQ(damages.size(), 1U);
    EXPECT_EQ(damages[0].error.code, ErrorCode::stale);
    EXPECT_THAT(damages[0].error.message, HasSubstr(k_why));
    const std::string bytes = text_of(path_of(m_key));
    const auto entry = cachefmt::decode(as_bytes(bytes), m_key);
    ASSERT_TRUE(succeeded(entry)) << "`warmgraph show` reads it";
    EXPECT_GT(entry->graph.nodes.size(), 2U);
}

TEST_F(KeptJoinedPair, IsRemovedByPruneAndSetAsideByWhoAsksForIt)
{
    EXPECT_EQ(open()->prune().value().removed.of(store::ArtifactKind::entries).files, 1U);
    EXPECT_FALSE(fs::exists(path_of(m_key)));
    fs::copy(k_kept / "joined_pair", m_root, fs::copy_options::recursive);
    const auto store = open();
    EXPECT_TRUE(failed_with(store->entry(m_key), ErrorCode::stale, k_why));
    EXPECT_FALSE(store->entry(m_key).value());
    EXPECT_FALSE(quarantined().empty());
}

TEST(KeptFormatsFolder, HasEveryOlderFormat)
{
    for (std::uint32_t format = 1; format < cachefmt::k_format_version; ++format)
        EXPECT_TRUE(fs::is_directory(k_kept / ("format" + std::to_string(format))))
            << "keep entries of format " << format;
}

} // namespace
} // namespace warmgraph::test::kept_formats_test
