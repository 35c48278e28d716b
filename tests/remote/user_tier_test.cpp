// A store of the program's own passes the tests that every tier passes, and what it gives is not trusted.
#include <limits>

#include "../store/tier_conformance.hpp"
#include "cache/user_tier.hpp"

namespace warmgraph::test::user_tier_test {
namespace {

/// A store of a program, over the tier in memory.
class Shelf final : public Tier {
public:
    std::optional<Object> get(const std::string& name, std::uint64_t offset, std::uint64_t bytes) override
    {
        auto found = m_kept.get(name_of(name), {.bytes = bytes, .whole = false, .offset = offset}).value();
        if (!found) return std::nullopt;
        return Object{found->stamp.size, found->bytes.value()};
    }
    void put(const std::string& name, std::span<const std::byte> bytes, TierPut mode) override
    {
        const auto how = mode == TierPut::replace ? store::PutMode::replace : store::PutMode::create_only;
        EXPECT_TRUE(succeeded(m_kept.put(name_of(name), bytes, how)));
    }
    void remove(const std::string& name) override { EXPECT_TRUE(succeeded(m_kept.remove(name_of(name)))); }
    std::vector<std::string> list(const std::string& prefix) override
    {
        // A store may also hold what is not warmgraph's, and may give more than was asked for.
        std::vector<std::string> names{prefix + "notes.txt", prefix, "", "../" + prefix};
        for (const auto kind :
             {store::ArtifactKind::tuned, store::ArtifactKind::images, store::ArtifactKind::entries}) {
            const auto all = m_kept.list({.kind = kind}).value();
            for (const store::Name& name : all) names.insert(names.begin(), to_text(name));
        }
        return names;
    }

private:
    static store::Name name_of(const std::string& text) { return store::name_from_text(text).value(); }
    MemoryTier m_kept;
};

constexpr TierMaker k_user{"user", [](const fs::path&) { return user_backend(std::make_shared<Shelf>(), "shelf"); }};
INSTANTIATE_TEST_SUITE_P(User, TierConformance, testing::Values(k_user),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Answers each get() with the same object.
class Liar final : public Tier {
public:
    explicit Liar(Object object) : m_object(std::move(object)) {}
    std::optional<Object> get(const std::string&, std::uint64_t, std::uint64_t) override { return m_object; }
    void put(const std::string&, std::span<const std::byte>, TierPut) override { throw std::bad_alloc(); }
    void remove(const std::string&) override { throw 7; } // NOLINT: any exception
    std::vector<std::string> list(const std::string&) override { return {}; }

private:
    Object m_object;
};

constexpr std::uint64_t k_huge = std::numeric_limits<std::uint64_t>::max();

TEST(UserTier, GivesNothingOfAnAnswerWithAWrongLength)
{
    const store::Name name = store::ImageName{};
    const auto get = [&](std::uint64_t size, std::size_t bytes, store::ReadLimit extent) {
        return user_backend(std::make_shared<Liar>(Tier::Object{size, std::vector<std::byte>(bytes)}), "liar")
            ->get(name, extent);
    };
    EXPECT_TRUE(succeeded(get(5, 5, {10})));
    EXPECT_TRUE(failed_with(get(5, 4, {10}), ErrorCode::corrupt, "tier liar gave 4 bytes"));
    EXPECT_TRUE(failed_with(get(5, 6, {10}), ErrorCode::corrupt, "expected 5"));
    EXPECT_TRUE(failed_with(get(k_huge, 6, {.bytes = 4, .whole = false}), ErrorCode::corrupt, "expected 4"));
    EXPECT_TRUE(
        failed_with(get(k_huge, 0, {.bytes = 4, .whole = false, .offset = 9}), ErrorCode::corrupt, "expected 4"));
    EXPECT_TRUE(
        failed_with(get(5, 1, {.bytes = 4, .whole = false, .offset = k_huge}), ErrorCode::corrupt, "expected 0"));
    const auto larger = get(k_huge, 10, {10});
    ASSERT_TRUE(larger && *larger);
    EXPECT_TRUE(failed_with((*larger)->bytes, ErrorCode::corrupt, "at most 10"));
}

TEST(UserTier, TurnsExceptionsIntoFailuresOfTheStore)
{
    const auto tier = user_backend(std::make_shared<Liar>(Tier::Object{}), "liar");
    EXPECT_TRUE(failed_with(tier->put(store::ImageName{}, Bytes(1)), ErrorCode::io_failed, "tier liar: put failed"));
    EXPECT_TRUE(failed_with(tier->remove(store::ImageName{}), ErrorCode::io_failed, "no std::exception"));
}

} // namespace
} // namespace warmgraph::test::user_tier_test
