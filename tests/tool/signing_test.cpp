// `warmgraph sign` and `warmgraph verify`, as an operator uses them.
#include <sys/stat.h>

#include "command_fixture.hpp"

namespace warmgraph::test::signing_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Signing : public CommandTest {
protected:
    std::string make_key(const std::string& name, const std::string& kind) const
    {
        const auto file = (dir() / (name + ".key")).string();
        const CommandResult made = run("sign --new-key " + file + " --id " + name + " --kind " + kind);
        EXPECT_EQ(made.status, 0) << made.error;
        const std::string line = text_of(file);
        EXPECT_THAT(made.out + made.error, Not(HasSubstr(line.substr(line.rfind(':') + 1, 16)))) << "a secret is shown";
        return file;
    }
    void publish_two() const
    {
        auto store = open_store();
        publish(*store, sample_entry(k_decode));
        auto other = sample_guards();
        other.facts[0].value = "f16";
        publish(*store, tombstone(k_decode, other));
    }
};

TEST_F(Signing, OfAFolderWithANewKeyIsVerifiedByItsPublicHalf)
{
    publish_two();
    const std::string key = make_key("release", "ed25519");
    struct stat status{};
    ASSERT_EQ(::stat(key.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);

    const CommandResult before = run("verify --accept-file " + key + ".pub");
    EXPECT_EQ(before.status, 1);
    EXPECT_THAT(before.out, HasSubstr("is not signed"));
    const CommandResult sign = run("sign --key-file " + key);
    EXPECT_EQ(sign.status, 0) << sign.out << sign.error;
    EXPECT_THAT(sign.out, HasSubstr("2 variants, 0 with something wrong"));
    const CommandResult verify = run("verify --json --accept-file " + key + ".pub");
    EXPECT_EQ(verify.status, 0) << verify.out;
    const auto verified = verify.json();
    ASSERT_EQ(verified["entries"].size(), 2U);
    for (const auto& entry : verified["entries"]) {
        EXPECT_EQ(entry["state"], "ok");
        EXPECT_EQ(entry["detail"], "signed with 'release'");
    }
    EXPECT_EQ(run("check").status, 0);
    EXPECT_THAT(run("sign --key-file " + key).out, HasSubstr("signed already"));
}

TEST_F(Signing, OtherVerbsSeeTheFolderAsAProgramWithThisEnvironmentDoes)
{
    publish_two();
    const std::string key = make_key("team", "hmac-sha256");
    const std::map<std::string, std::string> strict{{"WARMGRAPH_ACCEPT_KEYS_FILE", key},
                                                    {"WARMGRAPH_REQUIRE_SIGNED", "1"}};
    EXPECT_THAT(run("ls").out, testing::Not(HasSubstr("no accepted signature")));
    EXPECT_THAT(run("ls", strict).out, HasSubstr("untrusted"));
    ASSERT_EQ(run("sign --key-file " + key).status, 0);
    EXPECT_THAT(run("ls", strict).out, testing::Not(HasSubstr("untrusted")));
}

TEST_F(Signing, AgainRotatesTheKeyAndLetsNothingElseIn)
{
    publish_two();
    const std::string old_key = make_key("old", "hmac-sha256"), new_key = make_key("new", "hmac-sha256");
    ASSERT_EQ(run("sign", {{"WARMGRAPH_SIGN_KEY_FILE", old_key}}).status, 0);
    auto stranger = sample_guards();
    stranger.facts[0].value = "i8";
    publish(*open_store(), sample_entry(k_decode, stranger));

    const CommandResult rotated =
        run("sign --key-file " + new_key + " --accept-file " + old_key, {{"WARMGRAPH_REQUIRE_SIGNED", "1"}});
    EXPECT_EQ(rotated.status, 1) << "one entry is nobody's";
    EXPECT_THAT(rotated.out, HasSubstr("untrusted"));
    EXPECT_THAT(rotated.out, HasSubstr("3 variants, 1 with something wrong"));
    const CommandResult verify = run("verify --json --accept-file " + new_key);
    EXPECT_EQ(verify.status, 1);
    const auto verified = verify.json();
    int ok = 0;
    for (const auto& entry : verified["entries"]) ok += entry["detail"] == "signed with 'new'" ? 1 : 0;
    EXPECT_EQ(ok, 2);
    EXPECT_EQ(run("verify --accept-file " + old_key).status, 1);
}

TEST_F(Signing, RemovesNoEntryOfAProgramThatKeepsMany)
{
    constexpr int k_many = 70; // more than a program keeps by default
    const auto store = store::LocalStore::open(cache(), {.max_variants = k_many}).value();
    for (int i = 0; i < k_many; ++i) {
        auto guards = sample_guards();
        guards.facts[0].value = std::to_string(i);
        publish(*store, sample_entry(k_decode, guards));
    }
    const CommandResult sign = run("sign --key-file " + make_key("k", "hmac-sha256"));
    EXPECT_EQ(sign.status, 0) << sign.error;
    EXPECT_THAT(sign.out, HasSubstr("70 variants, 0 with something wrong"));
    EXPECT_EQ(store->variants(k_decode).value().size(), 70U);
}

TEST_F(Signing, LeavesWhatIsBeingRecordedAlone)
{
    const auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    const auto lock = store->try_record_lock(entry.header.key).value();
    ASSERT_NE(lock, nullptr);
    const CommandResult sign = run("sign --key-file " + make_key("k", "hmac-sha256"));
    EXPECT_EQ(sign.status, 1);
    EXPECT_THAT(sign.out, HasSubstr("is being recorded"));
}

TEST_F(Signing, NewKeyLeavesNoSecretWithoutItsPublicHalf)
{
    const auto file = (dir() / "release.key").string();
    std::ofstream(file + ".pub") << "another key's\n";
    EXPECT_NE(run("sign --new-key " + file + " --id release --kind ed25519").status, 0);
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Signing, FindsDamageAndMissingImages)
{
    const std::string key = make_key("k", "hmac-sha256");
    auto entry = sample_entry(k_decode);
    entry.graph.images = {{sha256(as_bytes("code")), 4, {}, "aux"}};
    entry.header.info.image_count = 1;
    publish(*open_store(), entry);
    ASSERT_EQ(run("sign --key-file " + key).status, 0);
    const CommandResult missing = run("verify --accept-file " + key);
    EXPECT_EQ(missing.status, 1);
    EXPECT_THAT(missing.out, HasSubstr("is missing or damaged"));
    damage(path_of(entry));
    EXPECT_THAT(run("verify --accept-file " + key).out, HasSubstr("corrupt"));
    EXPECT_TRUE(std::filesystem::exists(path_of(entry))) << "verify changes nothing";
    EXPECT_EQ(run("sign --key-file " + key).status, 1);
}

TEST_F(Signing, SaysWhatIsWrongWithItsKeys)
{
    publish_two();
    EXPECT_EQ(run("sign").status, 2);
    EXPECT_THAT(run("sign").error, HasSubstr("no key to sign with"));
    EXPECT_THAT(run("verify").error, HasSubstr("no key is accepted"));
    EXPECT_THAT(run("sign --key-file /nonexistent").error, HasSubstr("/nonexistent"));
    const std::string key = make_key("k", "hmac-sha256");
    EXPECT_THAT(run("sign --new-key " + key + " --id k").error, HasSubstr("cannot make key file")) << "not overwritten";
    EXPECT_EQ(run("sign --new-key " + key + "2 --id 'not an id'").status, 2);
    EXPECT_EQ(run("sign --id k").status, 2);
    EXPECT_EQ(run("--cache-dir " + (dir() / "nothing").string() + " verify --accept-file " + key).status, 3);
}

/// S2: doctor lists the environment.
TEST_F(Signing, DoesNotShowSecretsOfTheEnvironment)
{
    const std::string canary(64, 'e');
    publish_two();
    const std::map<std::string, std::string> environment{{"WARMGRAPH_SIGN_KEY", "k:hmac-sha256:" + canary},
                                                         {"WARMGRAPH_ACCEPT_KEYS", "j:hmac-sha256:" + canary}};
    for (const char* arguments :
         {"doctor", "doctor --json", "show tiny-llama/decode", "stats", "ls --json", "check", "sign", "verify",
          "explain tiny-llama/decode", "sign --json", "show tiny-llama/decode --json"}) {
        const CommandResult result = run(arguments, environment);
        EXPECT_THAT(result.out + result.error, Not(HasSubstr(canary.substr(0, 16)))) << arguments;
    }
    EXPECT_THAT(run("doctor", environment).out, HasSubstr("(set)"));
}

} // namespace
} // namespace warmgraph::test::signing_test
