// Clearing: all, one model, one function.
#include "store_fixture.hpp"
#include "warmgraph/store/names.hpp"

namespace warmgraph::test {
namespace {

class Clear : public StoreTest {
protected:
    Clear()
    {
        m_store = open();
        EXPECT_TRUE(m_store->publish_image(m_image).value());
        EXPECT_TRUE(m_store->publish_image(m_other_image).value());
        for (const int variant : {0, 1}) {
            EXPECT_TRUE(succeeded(m_store->publish(make_entry(function("a", "decode"), variant, "", {m_image}))));
        }
        EXPECT_TRUE(succeeded(m_store->publish(make_entry(function("a", "prompt"), 0, "", {m_image}))));
        EXPECT_TRUE(succeeded(m_store->publish(make_entry(function("b", "decode"), 0, "", {m_other_image}))));
        m_store->add_usage(function("a", "decode"), {.hits = 1});
    }
    static FunctionKey function(const std::string& model, const std::string& name)
    {
        return {store::model_info(model, "opencl", "static", {}), "world1global_rank0", name};
    }
    std::size_t count() { return m_store->functions().value().size(); }

    Bytes m_image = image_of("of a");
    Bytes m_other_image = image_of("of b");
    std::unique_ptr<LocalStore> m_store;
};

TEST_F(Clear, AllRemovesEverythingOfTheCache)
{
    EXPECT_EQ(m_store->clear({}, {}).value(), 4U);
    EXPECT_EQ(count(), 0U);
    EXPECT_TRUE(m_store->images().value().empty()) << "however young";
    for (const std::string& name : names_in(m_root)) EXPECT_EQ(name, "images");
    EXPECT_EQ(m_store->clear({}, {}).value(), 0U);
    EXPECT_TRUE(succeeded(m_store->publish(make_entry(k_decode)))) << "and it goes on working";
}

TEST_F(Clear, ByModelLeavesTheOthersAndTheirImages)
{
    EXPECT_EQ(m_store->clear("a", {}).value(), 3U);
    EXPECT_EQ(count(), 1U);
    EXPECT_FALSE(m_store->image(sha256(m_image)).value());
    EXPECT_TRUE(m_store->image(sha256(m_other_image)).value());
}

TEST_F(Clear, ByModelInfoMeansOneConfiguration)
{
    EXPECT_EQ(m_store->clear(function("b", "decode").model_info, {}).value(), 1U);
    EXPECT_EQ(count(), 2U);
}

TEST_F(Clear, ByFunctionLeavesSharedImages)
{
    EXPECT_EQ(m_store->clear("a", "decode").value(), 2U);
    EXPECT_EQ(count(), 2U);
    EXPECT_TRUE(m_store->image(sha256(m_image)).value()) << "prompt still names it";
    EXPECT_EQ(m_store->usage(function("a", "decode")).hits, 0U);
    EXPECT_EQ(m_store->clear({}, "decode").value(), 1U);
}

TEST_F(Clear, OfAnUnknownNameRemovesNothing)
{
    EXPECT_EQ(m_store->clear("nobody", {}).value(), 0U);
    EXPECT_EQ(m_store->clear({}, "nothing").value(), 0U);
    EXPECT_EQ(m_store->clear("a_static", {}).value(), 0U);
    EXPECT_EQ(count(), 3U);
}

TEST_F(Clear, LeavesForeignFilesAndLocksInUse)
{
    write(folder(function("b", "decode")) / "notes.txt", "mine");
    const auto lock = m_store->try_record_lock(make_entry(function("a", "prompt")).header.key).value();
    ASSERT_NE(lock, nullptr);
    EXPECT_EQ(m_store->clear({}, {}).value(), 4U);
    EXPECT_TRUE(fs::exists(folder(function("b", "decode")) / "notes.txt"));
    EXPECT_EQ(open()->try_record_lock(make_entry(function("a", "prompt")).header.key).value(), nullptr);
}

} // namespace
} // namespace warmgraph::test
