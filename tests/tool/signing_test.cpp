// Uses `warmgraph sign`, and `warmgraph check` for signatures, as an operator does.
#include <sys/stat.h>

#include "command_fixture.hpp"
#include "sample_best_config.hpp"
#include "sample_profile.hpp"
#include "sample_program.hpp"
#include "warmgraph/autotune/config_library.hpp"
#include "warmgraph/precompile/program_library.hpp"
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/store/signing.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::test::signing_test {
namespace {

class Signing : public CommandTest {
protected:
    std::string make_key(const std::string& name, const std::string& kind) const
    {
        const auto file = (dir() / (name + ".key")).string();
        const CommandResult made = run(0, "sign --new-key " + file + " --id " + name + " --kind " + kind);
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
    /// Publishes artifacts as a process with this key file does. If `key` is empty, the process has no key.
    cachefmt::Trust put_artifacts(const std::string& key) const
    {
        store::SigningSource source;
        source.sign_with_file = key;
        const auto trust = store::resolve_signing(source, [](const char*) { return std::nullopt; }).value();
        const auto store = open_store();
        autotune::ConfigLibrary tuned(store->tier());
        const bool is_done =
            precompile::ProgramLibrary(*store, trust).put(k_program).has_value() &&
            tuned.put(autotune::test::sample_best_config()).has_value() &&
            profile::ProfileLibrary(store->tier()).merge(profile::test::sample_profile()).has_value() &&
            (key.empty() || put_torch(*store, k_torch, "2026-11-25T06:00:00Z", as_bytes("pickles"), trust).has_value());
        EXPECT_TRUE(is_done);
        return trust;
    }
    static cachefmt::Trust required(const std::string& accepted)
    {
        store::SigningSource source;
        source.accept_file = accepted;
        source.require = true;
        return store::resolve_signing(source, [](const char*) { return std::nullopt; }).value();
    }
    /// The artifacts, by the folder in their names. For the output of `sign` this has each one's state; for `check` its
    /// key or the error's code.
    static std::map<std::string, std::string> states(const CommandResult& result)
    {
        std::map<std::string, std::string> states;
        const auto json = result.json();
        const auto take = [&](const char* list, const char* name, const char* state) {
            for (const auto& one : json.value(list, nlohmann::json::array())) {
                const auto text = one[name].get<std::string>();
                if (!text.starts_with("tiny-llama")) states[text.substr(0, text.find('/'))] = one[state];
            }
        };
        take("artifacts", "name", "state");
        take("signatures", "path", "signed_by");
        take("damage", "path", "code");
        return states;
    }

    const precompile::CompiledProgram k_program = precompile::test::sample_program();
    const store::TorchFacts k_torch{{"torch", "2.11.0"}};
    using States = std::map<std::string, std::string>;
};

TEST_F(Signing, OfAFolderWithANewKeyIsCheckedByItsPublicHalf)
{
    publish_two();
    const std::string key = make_key("release", "ed25519");
    struct stat status{};
    ASSERT_EQ(::stat(key.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);

    const CommandResult before = run(1, "check --accept-file " + key + ".pub");
    EXPECT_THAT(before.out, HasSubstr("is not signed"));
    EXPECT_THAT(before.out, Not(HasSubstr("--repair"))) << "nothing is damaged";
    EXPECT_EQ(run("check", {{"WARMGRAPH_ACCEPT_KEYS_FILE", key + ".pub"}}).status, 0) << "nobody asks for signatures";
    const CommandResult sign = run(0, "sign --key-file " + key);
    EXPECT_THAT(sign.out, HasSubstr("2 variants, 0 with problems"));
    const CommandResult check = run(0, "check --json --accept-file " + key + ".pub");
    const auto signatures = check.json()["signatures"];
    ASSERT_EQ(signatures.size(), 2U);
    for (const auto& signature : signatures) {
        EXPECT_THAT(signature["path"].get<std::string>(), EndsWith(".wg"));
        EXPECT_EQ(signature["signed_by"], "release");
    }
    EXPECT_THAT(run("check --accept-file " + key + ".pub").out, HasSubstr("; 2 signed with 'release'\n"));
    EXPECT_EQ(run("check").status, 0);
    EXPECT_THAT(run("sign --key-file " + key).out, HasSubstr("signed already"));
}

TEST_F(Signing, OtherVerbsSeeTheFolderAsAProgramWithThisEnvironmentDoes)
{
    publish_two();
    const std::string key = make_key("team", "hmac-sha256");
    const std::map<std::string, std::string> strict{{"WARMGRAPH_ACCEPT_KEYS_FILE", key},
                                                    {"WARMGRAPH_REQUIRE_SIGNED", "1"}};
    EXPECT_THAT(run("ls").out, Not(HasSubstr("no accepted signature")));
    EXPECT_THAT(run("ls", strict).out, HasSubstr("untrusted"));
    ASSERT_EQ(run("sign --key-file " + key).status, 0);
    EXPECT_THAT(run("ls", strict).out, Not(HasSubstr("untrusted")));
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
    EXPECT_THAT(rotated.out, HasSubstr("3 variants, 1 with problems"));
    const CommandResult check = run(1, "check --accept-file " + new_key);
    EXPECT_THAT(check.out,
                HasSubstr("1 file with problems (3 entries, 0 images, 0 other objects); 2 signed with 'new'\n"));
    EXPECT_EQ(run("check --accept-file " + old_key).status, 1);
}

/// Promise H17: with the policy `no_compile`, a start once found only the program that was signed with the old key.
TEST_F(Signing, OfEveryKindIsRotatedAndChecked)
{
    const std::string old_key = make_key("old", "ed25519"), new_key = make_key("new", "ed25519");
    publish(*open_store(), sample_entry(k_decode));
    put_artifacts(old_key);
    EXPECT_EQ(states(run("check --json --accept-file " + old_key + ".pub")),
              (States{{"compiled", "old"}, {"torch", "old"}}));
    EXPECT_EQ(states(run("check --json --accept-file " + new_key + ".pub")),
              (States{{"compiled", "untrusted"}, {"torch", "untrusted"}}));

    const CommandResult rotated = run(0, "sign --json --key-file " + new_key + " --accept-file " + old_key + ".pub");
    EXPECT_EQ(states(rotated), (States{{"compiled", "signed"}, {"torch", "signed"}}));
    const CommandResult checked = run(0, "check --accept-file " + new_key + ".pub");
    EXPECT_THAT(checked.out, HasSubstr("no damage found (1 entry, 0 images, 4 other objects); 3 signed with 'new'\n"));
    EXPECT_EQ(states(run("sign --json --key-file " + new_key)),
              (States{{"compiled", "signed already"}, {"torch", "signed already"}}));

    const auto trust = required(new_key + ".pub");
    const auto store = open_store();
    EXPECT_EQ(precompile::ProgramLibrary(*store, trust).find(k_program.ingredients).value()->compiled.image,
              k_program.compiled.image);
    EXPECT_TRUE(find_torch(*store, k_torch, trust).value().has_value());
    EXPECT_EQ(run("check").status, 0);
}

TEST_F(Signing, VouchesForAnArtifactOnlyWhereThatIsAllowed)
{
    const std::string key = make_key("k", "hmac-sha256"), strangers = make_key("stranger", "hmac-sha256");
    put_artifacts(strangers);
    put_artifacts("");
    const CommandResult strict = run("sign --json --key-file " + key, {{"WARMGRAPH_REQUIRE_SIGNED", "1"}});
    EXPECT_EQ(strict.status, 1);
    EXPECT_EQ(states(strict), (States{{"compiled", "untrusted"}, {"torch", "untrusted"}}));
    const CommandResult all = run(1, "sign --json --key-file " + key);
    EXPECT_EQ(states(all), (States{{"compiled", "signed"}, {"torch", "untrusted"}})) << "it can run any code";
}

TEST_F(Signing, FindsDamageOfEveryKind)
{
    const std::string key = make_key("k", "hmac-sha256");
    put_artifacts(key);
    for (const auto& item : std::filesystem::recursive_directory_iterator(cache()))
        if (item.is_regular_file() && item.path().has_extension() && item.path().filename() != "CACHEDIR.TAG")
            std::filesystem::resize_file(item.path(), item.file_size() - 10);
    const auto before = snapshot(cache());
    const CommandResult check = run(1, "check --json --accept-file " + key);
    const States all_wrong{
        {"compiled", "corrupt"}, {"autotune", "corrupt"}, {"profile", "corrupt"}, {"torch", "corrupt"}};
    EXPECT_EQ(states(check), all_wrong);
    EXPECT_EQ(states(run("sign --json --key-file " + key)), all_wrong);
    EXPECT_EQ(run("check --json").json()["damage"].size(), 4U);
    EXPECT_EQ(snapshot(cache()), before);
    EXPECT_EQ(run("check --repair").status, 0);
    EXPECT_EQ(run("check").status, 0);
}

TEST_F(Signing, RemovesNoEntryOfAProgramThatKeepsMany)
{
    constexpr int k_many = 70; // more entries than a program keeps if the limit is not set
    const auto store = store::LocalStore::open(cache(), {.max_variants = k_many}).value();
    for (int i = 0; i < k_many; ++i) {
        auto guards = sample_guards();
        guards.facts[0].value = std::to_string(i);
        publish(*store, sample_entry(k_decode, guards));
    }
    const CommandResult sign = run(0, "sign --key-file " + make_key("k", "hmac-sha256"));
    EXPECT_THAT(sign.out, HasSubstr("70 variants, 0 with problems"));
    EXPECT_EQ(store->variants(k_decode).value().size(), 70U);
}

TEST_F(Signing, LeavesWhatIsBeingRecordedAlone)
{
    const auto store = open_store();
    const auto entry = sample_entry(k_decode);
    publish(*store, entry);
    const auto lock = store->try_record_lock(entry.header.key).value();
    ASSERT_NE(lock, nullptr);
    const CommandResult sign = run(1, "sign --key-file " + make_key("k", "hmac-sha256"));
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
    const CommandResult missing = run(1, "check --accept-file " + key);
    EXPECT_THAT(missing.out, HasSubstr(" is missing"));
    damage(path_of(entry));
    EXPECT_THAT(run("check --accept-file " + key).out, HasSubstr("corrupt"));
    EXPECT_TRUE(std::filesystem::exists(path_of(entry))) << "check changes nothing";
    EXPECT_EQ(run("sign --key-file " + key).status, 1);
}

TEST_F(Signing, SaysWhatIsWrongWithItsKeys)
{
    publish_two();
    EXPECT_EQ(run("sign").status, 2);
    EXPECT_THAT(run("sign").error, HasSubstr("no key to sign with"));
    EXPECT_THAT(run("check", {{"WARMGRAPH_REQUIRE_SIGNED", "1"}}).error, HasSubstr("no key is accepted"));
    EXPECT_THAT(run("sign --key-file /nonexistent").error, HasSubstr("/nonexistent"));
    const std::string key = make_key("k", "hmac-sha256");
    EXPECT_THAT(run("sign --new-key " + key + " --id k").error, HasSubstr("cannot make key file")) << "not overwritten";
    EXPECT_EQ(run("sign --new-key " + key + "2 --id 'not an id'").status, 2);
    EXPECT_EQ(run("sign --id k").status, 2);
    EXPECT_EQ(run("--cache-dir " + (dir() / "nothing").string() + " check --accept-file " + key).status, 3);
}

/// Promise S2: doctor lists the environment, but not the secrets in it.
TEST_F(Signing, DoesNotShowSecretsOfTheEnvironment)
{
    const std::string canary(64, 'e');
    publish_two();
    const std::map<std::string, std::string> environment{{"WARMGRAPH_SIGN_KEY", "k:hmac-sha256:" + canary},
                                                         {"WARMGRAPH_ACCEPT_KEYS", "j:hmac-sha256:" + canary}};
    for (const char* arguments :
         {"doctor", "doctor --json", "show tiny-llama/decode", "stats", "ls --json", "check", "sign",
          "explain tiny-llama/decode", "sign --json", "show tiny-llama/decode --json"}) {
        const CommandResult result = run(arguments, environment);
        EXPECT_THAT(result.out + result.error, Not(HasSubstr(canary.substr(0, 16)))) << arguments;
    }
    EXPECT_THAT(run("doctor", environment).out, HasSubstr("(set)"));
}

} // namespace
} // namespace warmgraph::test::signing_test
