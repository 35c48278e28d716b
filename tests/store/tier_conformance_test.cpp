// The behaviour of every tier, and of the typed Store on top of it. A program with these tests says which tiers it tests.
#include <thread>

#include "tier_conformance.hpp"
#include "warmgraph/store/store.hpp"

namespace warmgraph::test::tier_conformance_test {
namespace {

using store::Name;

TEST_P(TierConformance, GivesWhatWasPut)
{
    const Name name = entry(k_decode, "a");
    EXPECT_EQ(text_of(name), "none");
    put(name, "first");
    EXPECT_EQ(text_of(name), "first");
    put(name, "second, and longer");
    EXPECT_EQ(text_of(name), "second, and longer");
    put(name, "");
    EXPECT_EQ(text_of(name), "");
}

TEST_P(TierConformance, GivesAsMuchAsIsWanted)
{
    const Name name = image("0123456789");
    put(name, "0123456789");
    const auto start = take(m_tier->get(name, {4, false}));
    ASSERT_TRUE(start);
    EXPECT_EQ(as_text(*start->bytes), "0123");
    EXPECT_EQ(start->stamp.size, 10U) << "of the whole object";
    EXPECT_EQ(as_text(*(*m_tier->get(name, {10}))->bytes), "0123456789");
    EXPECT_TRUE(failed_with((*m_tier->get(name, {9}))->bytes, ErrorCode::corrupt, "10 bytes, at most 9"));
    for (const auto& [offset, bytes, text] :
         std::initializer_list<std::tuple<std::uint64_t, std::uint64_t, const char*>>{
             {4, 3, "456"}, {8, 100, "89"}, {10, 1, ""}, {~0ULL, 1, ""}, {0, ~0ULL, "0123456789"}}) {
        const auto part = take(m_tier->get(name, {.bytes = bytes, .whole = false, .offset = offset}));
        ASSERT_TRUE(part) << offset;
        EXPECT_EQ(as_text(*part->bytes), text) << offset;
        EXPECT_EQ(part->stamp.size, 10U) << "of the whole object";
    }
}

TEST_P(TierConformance, KeepsWhatIsThereIfItMayOnlyMake)
{
    const Name name = image("a");
    EXPECT_TRUE(succeeded(m_tier->put(name, as_bytes("first"), store::PutMode::create_only)));
    EXPECT_TRUE(succeeded(m_tier->put(name, as_bytes("second"), store::PutMode::create_only)));
    EXPECT_EQ(text_of(name), "first");
    put(name, "third");
    EXPECT_EQ(text_of(name), "third");
}

TEST_P(TierConformance, KeepsNamesApart)
{
    const Name names[]{entry(k_decode, "a"), entry(k_decode, "b"), entry(k_prompt, "a"), image("a")};
    for (std::size_t i = 0; i < std::size(names); ++i) put(names[i], std::to_string(i));
    for (std::size_t i = 0; i < std::size(names); ++i) EXPECT_EQ(text_of(names[i]), std::to_string(i));
}

TEST_P(TierConformance, RemovesAlsoWhatIsNotThere)
{
    const Name name = entry(k_decode, "a");
    put(name, "text");
    EXPECT_TRUE(succeeded(m_tier->remove(name)));
    EXPECT_EQ(text_of(name), "none");
    EXPECT_TRUE(succeeded(m_tier->remove(name)));
    EXPECT_TRUE(succeeded(m_tier->remove(image("never"))));
}

TEST_P(TierConformance, ListsByScopeInOrder)
{
    EXPECT_TRUE(m_tier->list({}).value().empty());
    EXPECT_TRUE(m_tier->list({.function = k_decode}).value().empty());
    for (const char* of : {"a", "b", "c"}) put(entry(k_decode, of), of);
    put(entry(k_prompt, "a"), "a");
    for (const char* of : {"a", "b"}) put(image(of), of);
    const auto of_decode = m_tier->list({.function = k_decode}).value();
    EXPECT_THAT(of_decode, UnorderedElementsAre(entry(k_decode, "a"), entry(k_decode, "b"), entry(k_decode, "c")));
    EXPECT_TRUE(std::ranges::is_sorted(of_decode));
    EXPECT_THAT(m_tier->list({.function = k_prompt}).value(), ElementsAre(entry(k_prompt, "a")));
    EXPECT_EQ(m_tier->list({}).value().size(), 4U);
    EXPECT_THAT(m_tier->list({.kind = store::ArtifactKind::images}).value(),
                UnorderedElementsAre(image("a"), image("b")));
    EXPECT_TRUE(m_tier->list({.kind = store::ArtifactKind::tuned}).value().empty());
    const Name tuned = store::ArtifactName{store::ArtifactKind::tuned, sha256(as_bytes("a"))};
    const Name module = store::ArtifactName{store::ArtifactKind::tuned, sha256(as_bytes("a")), store::k_module_form};
    put(tuned, "tuned");
    put(module, "module");
    EXPECT_EQ(text_of(tuned), "tuned");
    EXPECT_THAT(m_tier->list({.kind = store::ArtifactKind::tuned}).value(), UnorderedElementsAre(tuned, module));
    EXPECT_TRUE(succeeded(m_tier->remove(tuned)));
    EXPECT_THAT(m_tier->list({.kind = store::ArtifactKind::tuned}).value(), ElementsAre(module));
}

TEST_P(TierConformance, NotesAUse)
{
    put(image("a"), "a");
    EXPECT_TRUE(succeeded(m_tier->note_use(image("a"))));
    EXPECT_EQ(text_of(image("a")), "a");
}

TEST_P(TierConformance, ShowsOneObjectOrTheOtherWhileItIsReplaced)
{
    const Name name = entry(k_decode, "a");
    const std::string texts[]{std::string(1000, 'x'), std::string(3000, 'y')};
    put(name, texts[0]);
    std::jthread writer([&](const std::stop_token& stop) {
        for (int i = 0; !stop.stop_requested(); ++i) ASSERT_TRUE(succeeded(m_tier->put(name, as_bytes(texts[i % 2]))));
    });
    for (int i = 0; i < 200; ++i) {
        const std::string text = text_of(name);
        ASSERT_TRUE(text == texts[0] || text == texts[1]) << text.substr(0, 100);
    }
}

TEST_P(TierConformance, CarriesTheTypedStore)
{
    store::Store store(*m_tier);
    const Bytes code = image_of("device code");
    const Entry one = make_entry(k_decode, 7, "bitwise", {code});
    EXPECT_FALSE(store.entry(one.header.key).value());
    EXPECT_TRUE(store.publish_image(code).value());
    EXPECT_FALSE(store.publish_image(code).value()) << "it is there";
    ASSERT_TRUE(succeeded(store.publish(one)));
    EXPECT_EQ(*store.header(one.header.key).value(), one.header);
    EXPECT_EQ(store.entry(one.header.key).value(), one);
    EXPECT_EQ(store.image(sha256(code)).value(), code);
    EXPECT_EQ(store.variants(k_decode).value().size(), 1U);
    ASSERT_TRUE(succeeded(store.remove(one.header.key)));
    EXPECT_FALSE(store.entry(one.header.key).value());
}

} // namespace
} // namespace warmgraph::test::tier_conformance_test
