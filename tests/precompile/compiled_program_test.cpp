// Tests the file `.compiled`: a changed file is always refused, and the differences between two programs are named.

#include "expect_error.hpp"
#include "sample_program.hpp"

namespace warmgraph::precompile::compiled_program_test {
namespace {

using test::sample_program;

Bytes encoded(const CompiledProgram& program = sample_program())
{
    auto bytes = encode(program);
    EXPECT_TRUE(succeeded(bytes));
    return bytes.value_or(Bytes{});
}

TEST(CompiledFile, GivesBackWhatWasWritten)
{
    const CompiledProgram program = sample_program();
    const auto again = take(decode(encoded()));
    EXPECT_EQ(again.ingredients, program.ingredients);
    EXPECT_EQ(again.compiled.image, program.compiled.image);
    EXPECT_EQ(again.compiled.origin, program.compiled.origin);
    EXPECT_EQ(again.compiled.ready, program.compiled.ready);
    EXPECT_EQ(again.compile_ms, program.compile_ms);
    EXPECT_EQ(encoded(again), encoded());
    const auto ingredients = decode_ingredients(ByteView(encoded()).first(encoded().size() - 200));
    ASSERT_TRUE(succeeded(ingredients)) << "the image is not looked at";
    EXPECT_EQ(*ingredients, program.ingredients);
}

TEST(CompiledFile, KeepsItsTag)
{
    CompiledProgram tagged = sample_program();
    tagged.ingredients.tag = "blue";
    EXPECT_EQ(take(decode(encoded(tagged))).ingredients, tagged.ingredients);
}

TEST(CompiledFile, IsRefusedWhereAnyByteChanged)
{
    const Bytes whole = encoded();
    for (std::size_t at = 0; at < whole.size(); ++at) {
        Bytes changed = whole;
        changed[at] ^= std::byte{0x20};
        EXPECT_FALSE(decode(changed).has_value()) << at;
    }
    for (std::size_t size = 0; size < whole.size(); size += 7)
        EXPECT_TRUE(failed_with(decode(ByteView(whole).first(size)), ErrorCode::corrupt)) << size;
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_TRUE(failed_with(decode(longer), ErrorCode::corrupt));
}

TEST(CompiledFile, FromBeforeHeadersHadAnOrderIsReadAndIsAnother)
{
    CompiledProgram old = sample_program();
    old.ingredients.search = {};
    const auto again = take(decode(encoded(old)));
    EXPECT_EQ(again.ingredients, old.ingredients);
    const auto found = differences(old.ingredients, sample_program().ingredients);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().fact, "header order");
    EXPECT_EQ(found.front().recorded, "(none)");
}

TEST(CompiledFile, OfAnotherFormatIsStale)
{
    Bytes newer = encoded();
    newer[8] = std::byte{2};
    EXPECT_TRUE(failed_with(decode(newer), ErrorCode::stale, "format 2, expected 1"));
}

TEST(CompiledFile, IsNotWrittenWithTextsThatItWouldNotGiveBack)
{
    CompiledProgram program = sample_program();
    program.ingredients.options = {"-DNAME=\xff"};
    EXPECT_TRUE(failed_with(encode(program), ErrorCode::invalid_argument, "not UTF-8"));
    program.ingredients.options = {std::string(1 << 17, 'x')};
    EXPECT_TRUE(failed_with(encode(program), ErrorCode::invalid_argument, "too long"));
}

TEST(CompiledFile, IsTrustedByItsSignature)
{
    const auto key = std::make_shared<const SigningKey>(*SigningKey::parse("ci:ed25519:" + std::string(64, 'b')));
    const auto other = std::make_shared<const SigningKey>(*SigningKey::parse("ci:ed25519:" + std::string(64, 'c')));
    cachefmt::Trust trust;
    trust.accepted = {key};
    trust.require = true;
    EXPECT_TRUE(failed_with(decode(encoded(), trust), ErrorCode::untrusted, "not signed"));
    const auto with_key = take(encode(sample_program(), &*key));
    EXPECT_TRUE(succeeded(decode(with_key, trust)));
    EXPECT_TRUE(succeeded(decode(with_key)));
    EXPECT_TRUE(
        failed_with(decode(*encode(sample_program(), &*other), trust), ErrorCode::untrusted, "was not made with key"));
    trust.accepted.clear();
    EXPECT_TRUE(failed_with(decode(with_key, trust), ErrorCode::untrusted, "not accepted"));
}

TEST(ProgramKey, FollowsEverythingButTheName)
{
    const Ingredients before = sample_program().ingredients;
    const auto changed = [&](auto change) {
        Ingredients after = before;
        change(after);
        EXPECT_NE(key_of(after), key_of(before));
        return differences(before, after);
    };
    const auto fact = [](const char* name) { return Field(&store::MissedFact::fact, name); };
    EXPECT_THAT(changed([](Ingredients& i) { i.source = {}; }), ElementsAre(fact("source")));
    EXPECT_THAT(changed([](Ingredients& i) { i.options.pop_back(); }), ElementsAre(fact("options")));
    EXPECT_THAT(changed([](Ingredients& i) { i.headers[1].digest = {}; }), ElementsAre(fact("header types.h")));
    EXPECT_THAT(changed([](Ingredients& i) { i.headers.pop_back(); }), ElementsAre(fact("header types.h")));
    EXPECT_THAT(changed([](Ingredients& i) { i.search = {}; }), ElementsAre(fact("header order")));
    EXPECT_THAT(changed([](Ingredients& i) { i.target = "sm_80"; }), ElementsAre(fact("target")));
    EXPECT_THAT(changed([](Ingredients& i) { i.compiler = "NVRTC 12.4"; }), ElementsAre(fact("compiler")));
    EXPECT_THAT(changed([](Ingredients& i) { i.backend = "opencl"; }), ElementsAre(fact("backend")));
    EXPECT_THAT(changed([](Ingredients& i) { i.tag = "blue"; }), ElementsAre(fact("cache_key_tag")));
    Ingredients renamed = before;
    renamed.program = "other";
    EXPECT_EQ(key_of(renamed), key_of(before));
    EXPECT_TRUE(differences(before, renamed).empty());
}

} // namespace
} // namespace warmgraph::precompile::compiled_program_test
