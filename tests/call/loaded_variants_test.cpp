// Tests LoadedVariants: which variants it keeps, in which order, and which of them answered the last call.
#include "call_fixture.hpp"
#include "warmgraph/call/loaded_variants.hpp"

namespace warmgraph::test::loaded_variants_test {
namespace {

class LoadedVariantsTest : public CallTest {
protected:
    [[nodiscard]] static LoadedVariant variant(char name)
    {
        LoadedVariant result{guards::CallGuard{{}, {}, 0}, nullptr, digest_of(name)};
        result.recording = {recording(name), cachefmt::Part::forward};
        return result;
    }
    [[nodiscard]] static cachefmt::RecordingId recording(char name) { return {1, static_cast<std::uint64_t>(name)}; }
    [[nodiscard]] std::string names()
    {
        std::string result;
        for (const LoadedVariant& one : loaded)
            for (const char c : {'a', 'b', 'c', 'd', 'e'})
                if (one.guards_digest == digest_of(c)) result += c;
        return result;
    }
    LoadedVariants loaded{declare(), nullptr, 2};
};

TEST_F(LoadedVariantsTest, TheLeastRecentlyUsedGivesWay)
{
    loaded.keep(variant('a'));
    loaded.keep(variant('b'));
    EXPECT_EQ(names(), "ba");
    loaded.use(loaded.find(digest_of('a')));
    EXPECT_EQ(names(), "ab");
    loaded.keep(variant('c'));
    EXPECT_EQ(names(), "ca");
    EXPECT_EQ(loaded.find(digest_of('b')), loaded.end());
}

TEST_F(LoadedVariantsTest, APreloadedOneTakesNoOthersPlace)
{
    for (const char c : {'a', 'b', 'c', 'd'}) {
        LoadedVariant preloaded = variant(c);
        preloaded.is_preloaded = true;
        loaded.keep(std::move(preloaded));
    }
    EXPECT_EQ(names(), "dcba");
    loaded.keep(variant('e'));
    EXPECT_EQ(names(), "edcb");
}

TEST_F(LoadedVariantsTest, AForwardWaitsForItsBackward)
{
    EXPECT_FALSE(loaded.served());
    LoadedVariant forward = variant('a');
    forward.use = LoadedVariant::Use::waits;
    const auto kept = loaded.keep(std::move(forward));
    EXPECT_TRUE(loaded.served()->waits);
    loaded.end_wait(recording('a'));
    EXPECT_EQ(kept->use, LoadedVariant::Use::replayed);
    loaded.use(kept);
    EXPECT_FALSE(loaded.served()->waits);
    loaded.give_up(recording('a'));
    EXPECT_EQ(kept->use, LoadedVariant::Use::runs_as_it_is);
    loaded.forget_served();
    EXPECT_FALSE(loaded.served());
}

TEST_F(LoadedVariantsTest, AreTakenAndErased)
{
    for (const char c : {'a', 'b'}) loaded.keep(variant(c));
    EXPECT_EQ(loaded.take(loaded.find(digest_of('a'))).guards_digest, digest_of('a'));
    EXPECT_EQ(names(), "b");
    loaded.keep(variant('c'));
    loaded.erase_if([](const LoadedVariant& one) { return one.guards_digest == digest_of('b'); });
    EXPECT_EQ(names(), "c");
    loaded.erase_all("a test");
    EXPECT_EQ(names(), "");
}

} // namespace
} // namespace warmgraph::test::loaded_variants_test
