// A process reads headers that it has read before.
#include "store_fixture.hpp"
#include "warmgraph/store/store.hpp"

namespace warmgraph::test::headers_test {
namespace {

/// A tier in memory. It has versions of objects, and counts the bytes that it returns.
class CountingTier final : public store::Tier {
public:
    Result<std::optional<store::StampedBytes>> get(const store::Name& name, store::ReadLimit extent) override
    {
        const auto object = objects.find(to_text(name));
        if (object == objects.end()) return std::nullopt;
        const Bytes& bytes = object->second.bytes;
        store::Stamp stamp = object->second.stamp;
        stamp.size = bytes.size();
        Bytes given(bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(bytes.size(), extent.bytes)));
        read += given.size();
        return store::StampedBytes{stamp, std::move(given)};
    }
    using Tier::put;
    Result<void> put(const store::Name& name, ByteView bytes, store::PutMode) override
    {
        objects[to_text(name)] = {Bytes(bytes.begin(), bytes.end()), {.version = tells ? ++m_version : 0}};
        return {};
    }
    Result<void> remove(const store::Name& name) override
    {
        objects.erase(to_text(name));
        return {};
    }
    Result<std::vector<store::Name>> list(const store::Scope& scope) override
    {
        const std::string prefix = prefix_of(scope);
        std::vector<store::Name> names;
        for (const auto& [text, object] : objects)
            if (text.starts_with(prefix))
                if (const auto name = store::name_from_text(text)) names.push_back(*name);
        return names;
    }
    [[nodiscard]] std::uint64_t taken() { return std::exchange(read, 0); }

    struct Object {
        Bytes bytes;
        store::Stamp stamp;
    };
    std::map<std::string, Object> objects;
    std::uint64_t read = 0;
    bool tells = true;

private:
    std::uint64_t m_version = 0;
};

struct StoreHeaders : testing::Test {
    Entry publish(int variant = 0, const std::string& mark = "", const FunctionKey& function = k_decode)
    {
        const Entry entry = make_entry(function, variant, mark);
        EXPECT_TRUE(m_store.publish(entry));
        static_cast<void>(m_tier.taken());
        return entry;
    }
    EntryHeader header(const EntryKey& key)
    {
        const auto found = m_store.header(key);
        EXPECT_TRUE(found && *found);
        return found && *found ? **found : EntryHeader{};
    }
    std::vector<EntryHeader> variants(const FunctionKey& function = k_decode)
    {
        const auto found = m_store.variants(function);
        std::vector<EntryHeader> headers;
        for (const auto& variant : found.value_or(std::vector<store::Variant>{}))
            headers.push_back(variant.header ? *variant.header : EntryHeader{});
        return headers;
    }

    CountingTier m_tier;
    store::Store m_store{m_tier};
};

/// For an entry that is not trusted, only the header is read, even when the caller asks for the whole entry at once.
TEST_F(StoreHeaders, AreAllThatIsReadOfWhatIsNotTrusted)
{
    Entry entry = make_entry(k_decode);
    entry.graph.nodes.assign(4000, entry.graph.nodes[0]);
    entry.header.info.node_count = 4000;
    store::Caps caps;
    caps.packings.payloads.level = 0;
    ASSERT_TRUE(succeeded(store::Store(m_tier, caps).publish(entry)));
    caps.trust.require = true;
    caps.trust.accepted = {
        std::make_shared<const SigningKey>(SigningKey::generate("k", SignatureKind::ed25519).value())};
    const std::uint64_t size = m_tier.objects.begin()->second.bytes.size();
    ASSERT_GT(size, 100'000U);
    static_cast<void>(m_tier.taken());
    EXPECT_TRUE(failed_with(store::Store(m_tier, caps).entry(entry.header.key), ErrorCode::untrusted, "not signed"));
    EXPECT_LT(m_tier.taken(), size / 2);
}

TEST_F(StoreHeaders, AreReadOnce)
{
    const Entry entry = publish();
    EXPECT_EQ(header(entry.header.key), entry.header);
    EXPECT_GT(m_tier.taken(), 0U);
    EXPECT_EQ(header(entry.header.key), entry.header);
    EXPECT_EQ(variants(), std::vector{entry.header});
    EXPECT_EQ(m_tier.taken(), 0U);
}

TEST_F(StoreHeaders, OfAFunctionAreReadOnceAndNewOnesToo)
{
    const Entry first = publish(0);
    EXPECT_EQ(variants().size(), 1U);
    const Entry second = publish(1);
    EXPECT_THAT(variants(), UnorderedElementsAre(first.header, second.header));
    EXPECT_GT(m_tier.taken(), 0U);
    EXPECT_THAT(variants(), UnorderedElementsAre(first.header, second.header));
    EXPECT_EQ(header(second.header.key), second.header);
    EXPECT_EQ(m_tier.taken(), 0U);
}

TEST_F(StoreHeaders, AreReadOneByOneInTheOrderOfTheirUse)
{
    const Entry first = publish(0), second = publish(1), third = publish(2);
    const auto used = [&](const Entry& entry, int hours) {
        m_tier.objects.at(store::to_text(store::Name{entry.header.key})).stamp.used =
            std::chrono::system_clock::time_point{std::chrono::hours{hours}};
    };
    used(first, 2), used(second, 3), used(third, 1);
    const auto uses = m_store.by_last_use(k_decode);
    ASSERT_TRUE(uses);
    std::vector<Digest> digests;
    for (const store::EntryUse& use : *uses) digests.push_back(use.guards_digest);
    EXPECT_EQ(digests, (std::vector{second.header.key.guards_digest, first.header.key.guards_digest,
                                    third.header.key.guards_digest}));
    EXPECT_EQ(m_tier.taken(), 0U) << "no header was read";
    EXPECT_EQ(header({k_decode, digests.front()}), second.header);
    const std::uint64_t one = m_tier.taken();
    EXPECT_EQ(variants().size(), 3U);
    EXPECT_EQ(m_tier.taken(), 2 * one) << "the other two";
}

TEST_F(StoreHeaders, OfWholeEntriesAreKnown)
{
    const Entry entry = publish();
    ASSERT_TRUE(m_store.entry(entry.header.key, store::ReadPurpose::preload));
    static_cast<void>(m_tier.taken());
    EXPECT_EQ(header(entry.header.key), entry.header);
    EXPECT_EQ(m_tier.taken(), 0U);
}

TEST_F(StoreHeaders, AreReadAnewWhereTheEntryWasReplaced)
{
    const Entry before = publish(0, "one");
    EXPECT_EQ(header(before.header.key), before.header);
    const Entry after = publish(0, "another"); // has the same key
    ASSERT_EQ(after.header.key, before.header.key);
    EXPECT_EQ(header(after.header.key), after.header);
    EXPECT_EQ(variants(), std::vector{after.header});
}

TEST_F(StoreHeaders, AreNotGivenWhereTheEntryIsGone)
{
    const Entry entry = publish();
    EXPECT_EQ(header(entry.header.key), entry.header);
    ASSERT_TRUE(m_store.remove(entry.header.key));
    const auto found = m_store.header(entry.header.key);
    EXPECT_TRUE(found && !*found);
    EXPECT_TRUE(variants().empty());
}

TEST_F(StoreHeaders, AreNotGivenForOtherBytes)
{
    const Entry entry = publish();
    EXPECT_EQ(header(entry.header.key), entry.header);
    auto& object = m_tier.objects.begin()->second;
    object.bytes[100] ^= std::byte{1};
    ++object.stamp.version;
    EXPECT_FALSE(m_store.header(entry.header.key));
}

TEST_F(StoreHeaders, KeepTheUseThatIsNotedMeanwhile)
{
    publish();
    EXPECT_EQ(variants().size(), 1U);
    const std::chrono::system_clock::time_point used{std::chrono::hours{1}};
    m_tier.objects.begin()->second.stamp.used = used;
    const auto found = m_store.variants(k_decode);
    ASSERT_TRUE(found && found->size() == 1);
    EXPECT_EQ(found->front().last_used, used);
}

TEST_F(StoreHeaders, OfATierThatCannotTellAreReadEachTime)
{
    m_tier.tells = false;
    const Entry before = publish(0, "one");
    EXPECT_EQ(header(before.header.key), before.header);
    const Entry after = publish(0, "two"); // has the same size
    EXPECT_EQ(header(after.header.key), after.header);
    EXPECT_GT(m_tier.taken(), 0U);
}

TEST_F(StoreHeaders, TakeABoundedAmountOfMemory)
{
    constexpr int k_entries = 40; // half a MiB each: more than the store keeps
    std::vector<Entry> entries;
    for (int i = 0; i < k_entries; ++i) entries.push_back(publish(i, std::string(512 << 10, 'x')));
    EXPECT_EQ(variants().size(), static_cast<std::size_t>(k_entries));
    static_cast<void>(m_tier.taken());
    for (const Entry& entry : entries) EXPECT_EQ(header(entry.header.key), entry.header);
    EXPECT_GT(m_tier.taken(), 0U);
}

} // namespace
} // namespace warmgraph::test::headers_test
