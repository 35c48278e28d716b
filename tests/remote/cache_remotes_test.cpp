// Caches of two folders, as on two machines, share what they record: through a folder, and through a store of the
// program's own. A store that fails costs nothing, and caches with different tags share nothing.
#include <map>
#include <mutex>
#include <stdexcept>

#include "facade_fixture.hpp"
#include "log_lines.hpp"

namespace warmgraph::test::cache_remotes_test {
namespace {

const std::string k_key = "release:hmac-sha256:" + std::string(64, 'a');

/// A store in memory, as a program may bring one.
class MapTier : public Tier {
public:
    std::optional<Object> get(const std::string& name, std::uint64_t offset, std::uint64_t bytes) override
    {
        const std::scoped_lock lock{m_mutex};
        const auto found = m_objects.find(name);
        if (found == m_objects.end()) return std::nullopt;
        Object object{found->second.size()};
        const std::uint64_t begin = std::min(offset, object.size), end = begin + std::min(bytes, object.size - begin);
        object.bytes.assign(found->second.begin() + static_cast<std::ptrdiff_t>(begin),
                            found->second.begin() + static_cast<std::ptrdiff_t>(end));
        return object;
    }
    void put(const std::string& name, std::span<const std::byte> bytes, TierPut mode) override
    {
        const std::scoped_lock lock{m_mutex};
        const auto [object, is_new] = m_objects.try_emplace(name);
        if (is_new || mode == TierPut::replace) object->second.assign(bytes.begin(), bytes.end());
    }
    void remove(const std::string& name) override
    {
        const std::scoped_lock lock{m_mutex};
        m_objects.erase(name);
    }
    std::vector<std::string> list(const std::string& prefix) override
    {
        const std::scoped_lock lock{m_mutex};
        std::vector<std::string> names;
        for (const auto& [name, bytes] : m_objects)
            if (name.starts_with(prefix)) names.push_back(name);
        return names;
    }
    [[nodiscard]] std::size_t count(const std::string& prefix) { return list(prefix).size(); }

private:
    std::mutex m_mutex;
    std::map<std::string, std::vector<std::byte>> m_objects;
};

class ThrowingTier final : public Tier {
public:
    std::optional<Object> get(const std::string&, std::uint64_t, std::uint64_t) override { return failed(); }
    void put(const std::string&, std::span<const std::byte>, TierPut) override { failed(); }
    void remove(const std::string&) override { failed(); }
    std::vector<std::string> list(const std::string&) override { throw 7; } // NOLINT: any exception

private:
    static std::optional<Object> failed() { throw std::runtime_error("the shelf is empty"); }
};

class CacheRemotes : public FacadeTest {
protected:
    CacheRemotes() { log().set_level(spdlog::level::off); }
    CacheRemotes(const CacheRemotes&) = delete;
    CacheRemotes& operator=(const CacheRemotes&) = delete;
    ~CacheRemotes() override { log().set_level(spdlog::level::info); }

    /// Options of a cache on a machine of its own: nothing of this environment is used.
    [[nodiscard]] CacheOptions machine(const std::string& folder, const std::string& key = k_key) const
    {
        CacheOptions result = cache_options("toy", dir.path() / folder);
        result.remote.emplace();
        result.remote_deadline_ms = 60'000;
        result.signing.sign_with = key;
        return result;
    }
    /// Calls y = x + 1 in a cache of its own, and returns what happened.
    struct Called {
        Outcome outcome;
        Statistics now;
    };
    [[nodiscard]] Called call(const CacheOptions& how) const
    {
        Cache cache{how};
        Function function = add_one(cache);
        const Buffer y = floats(0);
        const Outcome outcome = function({{"x", m_x}, {"y", y}});
        EXPECT_EQ(read(y)[3], 4.0f);
        return {outcome, cache.statistics()};
    }
    [[nodiscard]] std::size_t count(const std::string& folder, const std::string& extension) const
    {
        std::size_t result = 0;
        for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / folder))
            result += item.is_regular_file() && item.path().extension() == extension ? 1U : 0U;
        return result;
    }
};

TEST_F(CacheRemotes, AFolderGivesAnotherMachineWhatOneRecorded)
{
    const std::string url = "file://" + (dir.path() / "shared").string();
    CacheOptions one = machine("a"), other = machine("b");
    one.remote = other.remote = {url};
    const auto [recorded, first] = call(one);
    EXPECT_EQ(recorded, Outcome::recorded);
    ASSERT_EQ(first.remotes.size(), 1U);
    EXPECT_EQ(first.remotes[0].label, url);
    EXPECT_EQ(first.remotes[0].hits, 0U);
    EXPECT_GT(first.remotes[0].misses, 0U);
    EXPECT_EQ(count("shared", ".wg"), 1U) << "the end of the cache waits for it";
    other.policy = Policy::require_hit;
    const auto [replayed, second] = call(other);
    EXPECT_EQ(replayed, Outcome::replayed);
    EXPECT_EQ(second.of(ArtifactKind::entries).made, 0U);
    EXPECT_EQ(second.of(ArtifactKind::entries).hits, 1U);
    EXPECT_GT(second.remotes.at(0).hits, 0U);
    EXPECT_GT(second.remotes[0].bytes_read, 0U);
    EXPECT_EQ(second.remotes[0].puts, 0U);
    EXPECT_THAT(second.remotes[0].errors, IsEmpty());
}

TEST_F(CacheRemotes, AStoreOfTheProgramGivesWhatOneRecorded)
{
    const auto shelf = std::make_shared<MapTier>();
    CacheOptions one = machine("a"), other = machine("b");
    one.tiers = {{.label = "shelf", .tier = shelf}};
    other.tiers = {{.label = "shelf", .tier = shelf, .read_only = true}};
    EXPECT_EQ(call(one).outcome, Outcome::recorded);
    EXPECT_EQ(shelf->count("entries/"), 1U);
    EXPECT_GT(shelf->count("images/"), 0U);
    EXPECT_GT(shelf->count("compiled/"), 0U);
    const std::size_t all = shelf->count("");
    const auto [replayed, now] = call(other);
    EXPECT_EQ(replayed, Outcome::replayed);
    ASSERT_EQ(now.remotes.size(), 1U);
    EXPECT_EQ(now.remotes[0].label, "shelf");
    EXPECT_GT(now.remotes[0].hits, 0U);
    EXPECT_EQ(shelf->count(""), all) << "it is read only";
    EXPECT_EQ(count("b", ".wg"), 1U) << "the folder keeps it";
    other.tiers.clear();
    EXPECT_EQ(call(other).outcome, Outcome::replayed) << "from the folder";
}

TEST_F(CacheRemotes, AStoreIsAskedAfterTheUrls)
{
    const auto shelf = std::make_shared<MapTier>();
    CacheOptions how = machine("a");
    how.remote = {"file://" + (dir.path() / "shared").string()};
    how.tiers = {{.label = "shelf", .tier = shelf}};
    const auto [recorded, now] = call(how);
    EXPECT_EQ(recorded, Outcome::recorded);
    ASSERT_EQ(now.remotes.size(), 2U);
    EXPECT_EQ(now.remotes[1].label, "shelf");
    how.cache_dir = (dir.path() / "b").string();
    const auto [replayed, then] = call(how);
    EXPECT_EQ(replayed, Outcome::replayed);
    EXPECT_GT(then.remotes.at(0).hits, 0U);
    EXPECT_EQ(then.remotes.at(1).bytes_read, 0U);
}

TEST_F(CacheRemotes, AStoreThatThrowsCostsNothing)
{
    CacheOptions how = machine("a");
    how.tiers = {{.label = "broken", .tier = std::make_shared<ThrowingTier>()}};
    const auto [recorded, now] = call(how);
    EXPECT_EQ(recorded, Outcome::recorded);
    EXPECT_EQ(now.remotes.at(0).hits, 0U);
    EXPECT_GE(now.remotes.at(0).errors.at("io_failed"), 1U);
    EXPECT_EQ(now.cache_faults, 0U);
    EXPECT_EQ(call(how).outcome, Outcome::replayed) << "from the folder";
}

TEST_F(CacheRemotes, WhatIsNotSignedIsRecordedAgain)
{
    const auto shelf = std::make_shared<MapTier>();
    CacheOptions unsigned_one = machine("a", "");
    unsigned_one.tiers = {{.label = "shelf", .tier = shelf, .allow_unsigned = true}};
    EXPECT_EQ(call(unsigned_one).outcome, Outcome::recorded);
    EXPECT_EQ(shelf->count("entries/"), 1U);
    CacheOptions strict = machine("b");
    strict.tiers = {{.label = "shelf", .tier = shelf, .read_only = true}};
    const auto [recorded, now] = call(strict);
    EXPECT_EQ(recorded, Outcome::recorded);
    EXPECT_GE(now.remotes.at(0).errors.at("untrusted"), 1U);
    unsigned_one.cache_dir = (dir.path() / "c").string();
    EXPECT_EQ(call(unsigned_one).outcome, Outcome::replayed) << "where the store may give unsigned objects";
}

TEST_F(CacheRemotes, WithoutAKeyAStrictStoreGivesNothingAndAWarningSaysSo)
{
    CacheOptions how = machine("a", "");
    how.tiers = {{.label = "shelf", .tier = std::make_shared<MapTier>()}};
    log().set_level(spdlog::level::warn);
    const LogLines lines;
    EXPECT_EQ(call(how).outcome, Outcome::recorded);
    EXPECT_THAT(lines.with("tier shelf gives nothing"), SizeIs(1));
}

TEST_F(CacheRemotes, WrongTiersAreRefused)
{
    const auto shelf = std::make_shared<MapTier>();
    const auto refused = [&](std::vector<TierOptions> tiers) {
        CacheOptions how = machine("a");
        how.tiers = std::move(tiers);
        return message_of(thrown_by([&] { const Cache cache{how}; }));
    };
    EXPECT_THAT(refused({{.label = "", .tier = shelf}}), HasSubstr("tier's label"));
    EXPECT_THAT(refused({{.label = "redis://u:p@host", .tier = shelf}}), HasSubstr("tier's label"));
    EXPECT_THAT(refused({{.label = "none"}}), HasSubstr("tier none is null"));
    EXPECT_THAT(refused({{.label = "x", .tier = shelf}, {.label = "x", .tier = shelf}}),
                HasSubstr("two tiers have the label x"));
}

TEST_F(CacheRemotes, TagsSeparateAllKinds)
{
    const std::vector<std::byte> bytes(16, std::byte{7});
    CacheOptions how = machine("a");
    const auto tagged = [&](const std::string& tag) {
        program = device.program("small", k_small_kernels); // a process compiles a program only once
        how.cache_key_tag = tag;
        return call(how);
    };
    EXPECT_EQ(tagged("").outcome, Outcome::recorded);
    const std::size_t programs = count("a", ".compiled"), profiles = count("a", ".profile");
    EXPECT_GT(programs, 0U);
    const auto [recorded, now] = tagged("blue");
    EXPECT_EQ(recorded, Outcome::recorded);
    EXPECT_EQ(now.of(ArtifactKind::compiled).made, 1U);
    EXPECT_EQ(count("a", ".wg"), 2U);
    EXPECT_EQ(count("a", ".compiled"), programs * 2);
    EXPECT_EQ(count("a", ".profile"), profiles * 2);
    Cache{how}.put_artifact("torch", {{"torch", "2.9"}}, bytes);
    EXPECT_EQ(tagged("blue").outcome, Outcome::replayed);
    EXPECT_EQ(Cache{how}.artifact("torch", {{"torch", "2.9"}}), bytes);
    EXPECT_EQ(tagged("").outcome, Outcome::replayed) << "as before";
    EXPECT_EQ(Cache{how}.artifact("torch", {{"torch", "2.9"}}), std::nullopt);
}

TEST_F(CacheRemotes, TheTagOfTheEnvironmentCountsWhereTheProgramHasNone)
{
    CacheOptions how = machine("a");
    how.cache_key_tag = "blue";
    EXPECT_EQ(call(how).outcome, Outcome::recorded);
    how.cache_key_tag.clear();
    ::setenv("WARMGRAPH_CACHE_KEY_TAG", "blue", 1);
    const Outcome same = call(how).outcome;
    how.cache_key_tag = "green";
    const Outcome other = call(how).outcome;
    ::unsetenv("WARMGRAPH_CACHE_KEY_TAG");
    EXPECT_EQ(same, Outcome::replayed);
    EXPECT_EQ(other, Outcome::recorded) << "the program's tag goes before";
}

TEST_F(CacheRemotes, WrongTagsAreRefused)
{
    const auto refused = [&](const std::string& tag, const std::map<std::string, std::string>& config = {}) {
        CacheOptions how = machine("a");
        how.cache_key_tag = tag;
        how.config = config;
        return message_of(thrown_by([&] { const Cache cache{how}; }));
    };
    EXPECT_THAT(refused("two\nlines"), HasSubstr("printable ASCII"));
    EXPECT_THAT(refused(std::string(257, 'x')), HasSubstr("with 257 bytes"));
    EXPECT_THAT(refused("", {{"cache_key_tag", "x"}}), HasSubstr("reserved name 'cache_key_tag'"));
}

} // namespace
} // namespace warmgraph::test::cache_remotes_test
