// Signatures in a program: options, statistics, and the reason of a miss. No output contains a secret.
#include <spdlog/sinks/ostream_sink.h>

#include "cache/cache_impl.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::test::signing_test {
namespace {

const std::string k_canary = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";

class Signing : public FacadeTest {
protected:
    Signing()
    {
        log().sinks().push_back(m_sink);
        log().set_level(spdlog::level::trace);
    }
    ~Signing() override { std::erase(log().sinks(), m_sink); }

    Report call(const SigningOptions& signing, Policy policy = Policy::read_write)
    {
        CacheOptions opened = options(policy);
        opened.signing = signing;
        Cache cache{opened};
        Function f = add_one(cache);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(1)));
        statistics = cache.statistics();
        shown += cache.summary() + cache.readable("add_one") + f.report().reason + cache.disabled_reason();
        for (const std::string& reason : statistics.of(ArtifactKind::entries).miss_reasons) shown += reason;
        return f.report();
    }
    SigningOptions with(const std::string& sign_with, std::vector<std::string> accept = {}, bool require = true)
    {
        SigningOptions signing;
        signing.sign_with = sign_with;
        signing.accept = std::move(accept);
        signing.require = require;
        return signing;
    }
    [[nodiscard]] std::string logged() const { return m_log.str(); }

    const std::string old_key = "old:hmac-sha256:" + k_canary;
    const std::string new_key = "new:ed25519:" + k_canary;
    Statistics statistics;
    std::string shown;

private:
    std::ostringstream m_log;
    std::shared_ptr<spdlog::sinks::ostream_sink_mt> m_sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(m_log);
};

TEST_F(Signing, EntriesThatAProcessSignsAreReplayedByThoseWhoRequireIt)
{
    EXPECT_EQ(call(with(old_key)).outcome, Outcome::recorded);
    EXPECT_EQ(call(with(old_key)).outcome, Outcome::replayed);
    EXPECT_EQ(call(with({}, {old_key})).outcome, Outcome::replayed);
    EXPECT_EQ(call({}).outcome, Outcome::replayed) << "who asks for nothing";
    EXPECT_EQ(statistics.untrusted, 0U);
}

TEST_F(Signing, AnUnsignedEntryIsAMissThatIsCountedAndReplaced)
{
    EXPECT_EQ(call({}).outcome, Outcome::recorded);
    const Report reader = call(with({}, {old_key}));
    EXPECT_EQ(reader.outcome, Outcome::eager) << "without a key to sign with it records nothing";
    EXPECT_THAT(reader.reason, HasSubstr("is not signed, and a signature is required"));
    EXPECT_EQ(statistics.untrusted, 1U);
    EXPECT_EQ(statistics.cache_faults, 0U);
    EXPECT_THAT(shown, HasSubstr("1 untrusted"));
    EXPECT_THAT(logged(), HasSubstr("is not used: entry is not signed"));

    const Report signer = call(with(old_key));
    EXPECT_EQ(signer.outcome, Outcome::recorded);
    EXPECT_EQ(statistics.untrusted, 1U);
    EXPECT_EQ(call(with({}, {old_key})).outcome, Outcome::replayed);

    const auto store = store::LocalStore::open(dir.path() / "cache", {.access = store::StoreMode::read_only});
    ASSERT_TRUE(store) << store.error().message;
    const auto functions = (*store)->functions();
    ASSERT_TRUE(functions);
    const auto events = (*store)->usage(functions->at(0)).events.all();
    const auto counted = events.find({store::EventKind::untrusted, "untrusted"});
    ASSERT_NE(counted, events.end());
    EXPECT_EQ(counted->second.count, 2U) << "once by each process that met it";
    EXPECT_GT(counted->second.bytes, 0U);
    EXPECT_EQ(events.count({store::EventKind::damaged, "untrusted"}), 0U);
}

TEST_F(Signing, KeysAreRotatedById)
{
    EXPECT_EQ(call(with(old_key)).outcome, Outcome::recorded);
    EXPECT_EQ(call(with(new_key, {old_key})).outcome, Outcome::replayed);
    EXPECT_THAT(call(with({}, {new_key})).reason, HasSubstr("signed with key 'old', accepted are: new"));
    EXPECT_EQ(call(with(new_key)).outcome, Outcome::recorded) << "the old key is withdrawn";
    EXPECT_EQ(call(with({}, {new_key})).outcome, Outcome::replayed);
    EXPECT_EQ(call(with(old_key, {}, false)).outcome, Outcome::replayed) << "not required: an unknown key does no harm";
}

TEST_F(Signing, AForgedSignatureOfAKnownKeyIsRefusedInAnyCase)
{
    EXPECT_EQ(call(with(old_key)).outcome, Outcome::recorded);
    const std::string forged = "old:hmac-sha256:" + std::string(64, 'c');
    EXPECT_THAT(call(with({}, {forged}, false), Policy::read_only).reason, HasSubstr("forged"));
    EXPECT_EQ(statistics.untrusted, 1U);
}

TEST_F(Signing, WrongOptionsThrowAndDoNotRepeatTheSecret)
{
    for (const SigningOptions& wrong :
         {with(k_canary), with({}), with("k:hmac-sha256:" + k_canary + "0"), with({}, {k_canary})}) {
        const auto thrown = thrown_by([&] { call(wrong); });
        ASSERT_TRUE(failed_with(thrown, ErrorCode::invalid_argument));
        EXPECT_THAT(thrown->what(), Not(HasSubstr(k_canary.substr(0, 8))));
    }
}

/// Promise S2: checks the log at trace level, all other output, the folder, and the options that the cache keeps.
TEST_F(Signing, NoSecretIsInAnyOutput)
{
    call(with(old_key, {new_key}));
    call(with({}, {old_key}));
    call(with(new_key));
    call(with(old_key), Policy::refresh);
    EXPECT_THAT(logged(), HasSubstr("saved"));
    for (const std::string& text : {logged(), shown}) EXPECT_THAT(text, Not(HasSubstr(k_canary.substr(0, 8))));
    const std::string raw = "\x5e\xc2\xe7\x5e\xc2\xe7";
    for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "cache")) {
        if (!item.is_regular_file()) continue;
        const auto bytes = file_bytes(item.path());
        const std::string text{bytes.begin(), bytes.end()};
        EXPECT_EQ(text.find(k_canary.substr(0, 8)), std::string::npos) << item.path();
        EXPECT_EQ(text.find(raw), std::string::npos) << item.path();
    }
    CacheOptions opened = options();
    opened.signing = with(old_key, {new_key});
    const auto impl = Cache::Impl::open(opened, posix_file_system());
    EXPECT_TRUE(impl->settings.options.signing.sign_with.empty());
    for (const std::string& key : impl->settings.options.signing.accept) EXPECT_TRUE(key.empty());
}

} // namespace
} // namespace warmgraph::test::signing_test
