// P9: entries of older formats, as older versions wrote them (tests/cachefmt/kept): each is a clean miss with the
// reason, and makes room for a new recording.
#include "store_fixture.hpp"

namespace warmgraph::test::kept_formats_test {
namespace {

using testing::HasSubstr;

const fs::path k_kept = WARMGRAPH_KEPT_ENTRIES;

class KeptFormats : public StoreTest, public testing::WithParamInterface<int> {
protected:
    void SetUp() override
    {
        fs::remove_all(m_root);
        static_cast<void>(open()); // makes the folder and its mark
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

TEST(KeptFormatsFolder, HasEveryOlderFormat)
{
    for (std::uint32_t format = 1; format < cachefmt::k_format_version; ++format)
        EXPECT_TRUE(fs::is_directory(k_kept / ("format" + std::to_string(format))))
            << "keep entries of format " << format;
}

} // namespace
} // namespace warmgraph::test::kept_formats_test
