// Tests clearing of everything, of one model, and of one function.
#include "store_fixture.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::test::clear_test {
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
        return {cachefmt::model_info(model, "opencl", "static", {}), "world1global_rank0", name};
    }
    std::size_t count() { return m_store->functions().value().size(); }

    Bytes m_image = image_of("of a");
    Bytes m_other_image = image_of("of b");
    std::unique_ptr<LocalStore> m_store;
};

TEST_F(Clear, AllRemovesEverythingOfTheCache)
{
    EXPECT_EQ(m_store->clear().value().of(store::ArtifactKind::entries).files, 4U);
    EXPECT_EQ(count(), 0U);
    EXPECT_TRUE(m_store->images().value().empty()) << "however young";
    for (const std::string& name : names_in(m_root)) EXPECT_EQ(name, "images");
    EXPECT_EQ(m_store->clear().value().of(store::ArtifactKind::entries).files, 0U);
    EXPECT_TRUE(succeeded(m_store->publish(make_entry(k_decode)))) << "and it goes on working";
}

// Tuned configurations belong to no model, so clearing one model does not remove them.
TEST_F(Clear, TunedConfigurationsGoAloneOrWithAll)
{
    const auto put = [this] {
        for (const std::uint8_t form : {std::uint8_t{0}, store::k_module_form})
            ASSERT_TRUE(succeeded(m_store->tier().put(
                store::ArtifactName{store::ArtifactKind::tuned, sha256(as_bytes("kernel")), form}, as_bytes("four"))));
    };
    put();
    const fs::path foreign = m_root / "autotune" / "mine.txt";
    write(foreign, "not the library's");
    EXPECT_EQ(m_store->clear({.model = "a"}).value().of(store::ArtifactKind::tuned).files, 0U);
    EXPECT_EQ(m_store->plan_clear({.kinds = {store::ArtifactKind::tuned}}).value().of(store::ArtifactKind::tuned).bytes,
              8U);
    const auto alone = take(m_store->clear({.kinds = {store::ArtifactKind::tuned}}));
    EXPECT_EQ(alone.of(store::ArtifactKind::tuned).files, 2U);
    EXPECT_EQ(alone.files(), 2U) << "and nothing else";
    EXPECT_TRUE(m_store->tier().list({.kind = store::ArtifactKind::tuned}).value().empty());
    put();
    EXPECT_EQ(m_store->plan_clear(store::ClearRequest::everything()).value().of(store::ArtifactKind::tuned).files, 2U);
    EXPECT_EQ(m_store->clear(store::ClearRequest::everything()).value().of(store::ArtifactKind::tuned).files, 2U);
    EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(Clear, ByModelLeavesTheOthersAndTheirImages)
{
    EXPECT_EQ(m_store->clear({.model = "a"}).value().of(store::ArtifactKind::entries).files, 3U);
    EXPECT_EQ(count(), 1U);
    EXPECT_FALSE(m_store->image(sha256(m_image)).value());
    EXPECT_TRUE(m_store->image(sha256(m_other_image)).value());
}

TEST_F(Clear, ByModelInfoMeansOneConfiguration)
{
    EXPECT_EQ(
        m_store->clear({.model = function("b", "decode").model_info}).value().of(store::ArtifactKind::entries).files,
        1U);
    EXPECT_EQ(count(), 2U);
}

TEST_F(Clear, ByFunctionLeavesSharedImages)
{
    EXPECT_EQ(m_store->clear({.model = "a", .function = "decode"}).value().of(store::ArtifactKind::entries).files, 2U);
    EXPECT_EQ(count(), 2U);
    EXPECT_TRUE(m_store->image(sha256(m_image)).value()) << "prompt still names it";
    EXPECT_EQ(m_store->usage(function("a", "decode")).hits, 0U);
    EXPECT_EQ(m_store->clear({.function = "decode"}).value().of(store::ArtifactKind::entries).files, 1U);
}

TEST_F(Clear, ByRankLeavesTheOthers)
{
    FunctionKey other = function("a", "decode");
    other.rank = "world2global_rank1";
    ASSERT_TRUE(succeeded(m_store->publish(make_entry(other))));
    EXPECT_EQ(m_store->clear({.model = "a", .rank = other.rank, .function = "decode"})
                  .value()
                  .of(store::ArtifactKind::entries)
                  .files,
              1U);
    EXPECT_EQ(count(), 3U);
}

TEST_F(Clear, RemovesWhatThePlanSaid)
{
    flip(path_of(make_entry(function("b", "decode"), 0, "", {m_other_image}).header.key), 250);
    ASSERT_TRUE(succeeded(m_store->repair()));
    for (const store::ClearRequest& request :
         {store::ClearRequest{.function = "prompt"}, store::ClearRequest{.kinds = {}, .quarantine = true},
          store::ClearRequest{.kinds = {store::ArtifactKind::images}}, store::ClearRequest::everything(),
          store::ClearRequest{}}) {
        const auto before = snapshot(m_root);
        const auto planned = m_store->plan_clear(request).value();
        EXPECT_EQ(snapshot(m_root), before) << "a plan changes nothing";
        const auto removed = m_store->clear(request).value();
        EXPECT_EQ(planned.functions, removed.functions);
        EXPECT_EQ(planned.quarantined, removed.quarantined);
        EXPECT_EQ(planned.kinds, removed.kinds);
    }
    EXPECT_EQ(count(), 0U);
    EXPECT_TRUE(m_store->images().value().empty());
    EXPECT_TRUE(names_in(m_root / "quarantine").empty());
}

TEST_F(Clear, OfQuarantineLeavesAFolderThatStoodInAnEntrysPlace)
{
    const fs::path path = path_of(make_entry(function("b", "decode"), 1).header.key);
    write(path / "notes.txt", "mine");
    ASSERT_TRUE(succeeded(m_store->repair()));
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(m_store->clear({.kinds = {}, .quarantine = true}).value().quarantined.files, 0U);
    ASSERT_EQ(quarantined().size(), 1U);
    EXPECT_TRUE(fs::exists(m_root / "quarantine" / quarantined().front() / "notes.txt"));
}

TEST_F(Clear, OfAnUnknownNameRemovesNothing)
{
    const Bytes unused = image_of("that nothing names");
    ASSERT_TRUE(m_store->publish_image(unused).value());
    const auto before = snapshot(m_root);
    for (const store::ClearRequest& request :
         {store::ClearRequest{.model = "nobody"}, store::ClearRequest{.function = "nothing"},
          store::ClearRequest{.model = "a_static"}, store::ClearRequest{.rank = "world2global_rank0"}}) {
        EXPECT_EQ(m_store->plan_clear(request).value().functions, 0U);
        const auto removed = m_store->clear(request).value();
        EXPECT_EQ(removed.functions, 0U);
        EXPECT_EQ(removed.files(), 0U) << "nor the images that nothing names";
    }
    EXPECT_EQ(snapshot(m_root), before);
}

TEST_F(Clear, LeavesForeignFilesAndLocksInUse)
{
    write(folder(function("b", "decode")) / "notes.txt", "mine");
    const auto lock = m_store->try_record_lock(make_entry(function("a", "prompt")).header.key).value();
    ASSERT_NE(lock, nullptr);
    EXPECT_EQ(m_store->clear().value().of(store::ArtifactKind::entries).files, 4U);
    EXPECT_TRUE(fs::exists(folder(function("b", "decode")) / "notes.txt"));
    EXPECT_EQ(open()->try_record_lock(make_entry(function("a", "prompt")).header.key).value(), nullptr);
}

} // namespace
} // namespace warmgraph::test::clear_test
