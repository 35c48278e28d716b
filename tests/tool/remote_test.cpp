// Uses `warmgraph push`, `pull` and `doctor --remote` with folders as remotes, as an operator does.
#include "command_fixture.hpp"
#include "sample_best_config.hpp"
#include "sample_profile.hpp"
#include "sample_program.hpp"
#include "warmgraph/autotune/config_library.hpp"
#include "warmgraph/precompile/program_library.hpp"
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/remote/lasting_counts.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::remote_test {
namespace {

class Remote : public CommandTest {
protected:
    const cachefmt::FunctionKey k_other{"big-llama_static_clgraphcache_0123456789ab", "world1global_rank0", "decode"};
    const std::string k_code = "device code";
    using Environment = std::map<std::string, std::string>;

    [[nodiscard]] std::filesystem::path folder() const { return dir() / "remote"; }
    [[nodiscard]] std::string url(const std::string& attributes = "") const
    {
        return "'file://" + folder().string() + attributes + "'";
    }
    /// The options for a second machine's folder.
    [[nodiscard]] std::string there() const { return "--cache-dir " + (dir() / "there").string() + " "; }

    /// Makes a key. All commands sign and accept with it.
    Environment make_key() const
    {
        const std::string file = (dir() / "team.key").string();
        EXPECT_EQ(run("sign --new-key " + file + " --id team --kind ed25519").status, 0);
        return {{"WARMGRAPH_SIGN_KEY_FILE", file}};
    }

    cachefmt::Entry entry_with_image(const cachefmt::FunctionKey& key) const
    {
        auto entry = sample_entry(key);
        entry.graph.images = {{sha256(as_bytes(k_code)), k_code.size(), {}, "aux"}};
        entry.header.info.image_count = 1;
        return entry;
    }

    /// Two entries that share an image, a tombstone, a program, a tuned configuration and a profile.
    void fill() const
    {
        const auto store = open_store();
        take(store->publish_image(as_bytes(k_code)));
        publish(*store, entry_with_image(k_decode));
        publish(*store, entry_with_image(k_other));
        auto guards = sample_guards();
        guards.facts[0].value = "f16";
        publish(*store, tombstone(k_decode, guards));
        take(precompile::ProgramLibrary(*store, {}).put(precompile::test::sample_program()));
        take(autotune::ConfigLibrary(store->tier()).put(autotune::test::sample_best_config()));
        take(profile::ProfileLibrary(store->tier()).merge(profile::test::sample_profile()));
    }

    static nlohmann::json only(const CommandResult& result)
    {
        const auto remotes = result.json()["remotes"];
        EXPECT_EQ(remotes.size(), 1U);
        return remotes[0];
    }
    static std::size_t entries_in(const std::filesystem::path& folder)
    {
        std::size_t count = 0;
        for (const auto& item : std::filesystem::recursive_directory_iterator(folder))
            count += item.path().extension() == ".wg" ? 1 : 0;
        return count;
    }
};

TEST_F(Remote, GetsEverythingOnceAndGivesItToAnotherFolder)
{
    fill();
    const auto key = make_key();
    ASSERT_EQ(run("sign", key).status, 0);
    const auto sent = only(run(0, "push --json --remote " + url(), key));
    EXPECT_EQ(sent["sent"], 6) << "an image, two entries, a program, a configuration, a profile; no tombstone";
    EXPECT_EQ(sent["there"], 0);
    EXPECT_EQ(sent["unsigned"], 0);
    EXPECT_GT(sent["bytes"], 0);
    const auto again = only(run(0, "push --json --remote " + url(), key));
    EXPECT_EQ(again["sent"], 1) << "a profile is joined each time";
    EXPECT_EQ(again["there"], 5);

    const auto fetched = only(run(0, there() + "pull --json --remote " + url(), key));
    EXPECT_EQ(fetched["fetched"], 6);
    EXPECT_EQ(fetched["failed"], nlohmann::json::object());
    EXPECT_EQ(run(there() + "check --accept-file " + (dir() / "team.key.pub").string()).status, 0);
    EXPECT_EQ(run(0, there() + "ls --json", key).json()["functions"].size(), 2U);
    const auto nothing = only(run(0, there() + "pull --json --remote " + url(), key));
    EXPECT_EQ(nothing["fetched"], 0);
    EXPECT_EQ(nothing["there"], 6);
    const auto store = take(store::LocalStore::open(dir() / "there"));
    EXPECT_TRUE(take(store->image(sha256(as_bytes(k_code)))).has_value());
}

TEST_F(Remote, IsNamedByTheEnvironmentOrByEachOption)
{
    fill();
    auto key = make_key();
    for (const char* verb : {"push", "pull", "doctor --remote"}) {
        const CommandResult result = run(2, verb, key);
        EXPECT_THAT(result.error, AllOf(HasSubstr("--remote"), HasSubstr("WARMGRAPH_REMOTE"))) << verb;
    }
    const std::string second = "file://" + (dir() / "second").string();
    const auto both = run(0, "push --json --remote " + url() + " --remote " + second, key).json()["remotes"];
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0]["sent"], both[1]["sent"]);
    key["WARMGRAPH_REMOTE"] = "file://" + folder().string() + "?allow-unsigned," + second + "?allow-unsigned";
    EXPECT_EQ(run(0, there() + "pull --json", key).json()["remotes"].size(), 2U);
    EXPECT_EQ(run(0, "doctor --remote --json", key).json()["remotes"].size(), 2U);
    EXPECT_EQ(run(2, "push --remote nonsense").status, 2);
}

TEST_F(Remote, IsInTheReport)
{
    fill();
    EXPECT_TRUE(run(0, "report --json").json()["remotes"].empty());
    ASSERT_EQ(run(0, "push --remote " + url()).status, 0);
    const auto remotes = run(0, "report --json").json()["remotes"];
    ASSERT_EQ(remotes.size(), 1U);
    EXPECT_GT(remotes[0]["puts"], 0);
    EXPECT_GT(remotes[0]["bytes_written"], 0);
}

TEST_F(Remote, GetsAndGivesOnlyTheModelThatIsAskedFor)
{
    fill();
    const auto key = make_key();
    ASSERT_EQ(run("sign", key).status, 0);
    const auto sent = only(run(0, "push --json --model tiny-llama --remote " + url(), key));
    EXPECT_EQ(sent["sent"], 2) << "an entry and its image";
    EXPECT_EQ(entries_in(folder()), 1U);
    EXPECT_THAT(run(1, "push --model tiny-lama --remote " + url(), key).error, HasSubstr("tiny-llama"));

    ASSERT_EQ(run("push --remote " + url(), key).status, 0);
    const auto fetched = only(run(0, there() + "pull --json --model big-llama --remote " + url(), key));
    EXPECT_EQ(fetched["fetched"], 2);
    EXPECT_TRUE(std::filesystem::exists(dir() / "there" / k_other.model_info));
    EXPECT_FALSE(std::filesystem::exists(dir() / "there" / k_decode.model_info));
    EXPECT_THAT(run(1, there() + "pull --model none --remote " + url(), key).error, HasSubstr("'none'"));
}

TEST_F(Remote, GivesUnsignedObjectsOnlyWithAllowUnsigned)
{
    fill();
    const CommandResult pushed = run(0, "push --remote " + url());
    EXPECT_THAT(pushed.out, HasSubstr("2 entries without an accepted signature"));
    const auto key = make_key();
    const auto refused = only(run(1, there() + "pull --json --remote " + url(), key));
    EXPECT_EQ(refused["fetched"], 0);
    EXPECT_EQ(refused["failed"]["untrusted"]["count"], 5) << "two entries and three artifacts";
    EXPECT_EQ(entries_in(dir() / "there"), 0U);
    EXPECT_THAT(run(1, there() + "pull --remote " + url(), key).out, HasSubstr("untrusted"));

    ASSERT_EQ(run("sign", key).status, 0);
    EXPECT_EQ(only(run(0, "push --json --remote " + url(), key))["there"], 3)
        << "signed entries replace unsigned ones; the image, the program and the configuration stay";
    EXPECT_EQ(only(run(1, there() + "pull --json --remote " + url(), key))["fetched"], 4)
        << "two entries, their image, and the profile, which was sent again";
    EXPECT_EQ(only(run(0, there() + "pull --json --remote " + url("?allow-unsigned"), key))["fetched"], 2);
}

TEST_F(Remote, SpreadsNoDamagedObject)
{
    fill();
    const auto key = make_key();
    ASSERT_EQ(run("sign", key).status, 0);
    damage(path_of(sample_entry(k_decode)));
    const auto sent = only(run(1, "push --json --remote " + url(), key));
    EXPECT_EQ(sent["failed"]["corrupt"]["count"], 1);
    EXPECT_EQ(sent["sent"], 5);
    EXPECT_EQ(entries_in(folder()), 1U);

    for (const auto& item : std::filesystem::recursive_directory_iterator(folder()))
        if (item.path().extension() == ".wg" || item.path().extension() == ".compiled") damage(item.path());
    const auto fetched = only(run(1, there() + "pull --json --remote " + url(), key));
    EXPECT_EQ(fetched["failed"]["corrupt"]["count"], 2);
    EXPECT_EQ(fetched["fetched"], 2) << "the configuration and the profile";
    EXPECT_EQ(entries_in(dir() / "there"), 0U);
    EXPECT_EQ(run(there() + "check").status, 0);
    EXPECT_EQ(only(run(1, there() + "pull --json --remote " + url(), key))["failed"]["corrupt"]["count"], 2)
        << "each pull looks again";
}

TEST_F(Remote, ThatFailsHidesNoOther)
{
    fill();
    const auto key = make_key();
    std::ofstream(dir() / "file") << "no folder";
    const std::string broken = "file://" + (dir() / "file" / "cache").string();
    const auto pushed = run(1, "push --json --remote " + broken + " --remote " + url(), key).json()["remotes"];
    EXPECT_EQ(pushed[0]["sent"], 0);
    EXPECT_FALSE(pushed[0]["failed"].empty());
    EXPECT_EQ(pushed[1]["sent"], 6);
    const auto pulled = run(1, there() + "pull --json --remote " + broken + " --remote " + url("?allow-unsigned"), key)
                            .json()["remotes"];
    EXPECT_FALSE(pulled[0]["failed"].empty());
    EXPECT_EQ(pulled[1]["fetched"], 6);
    EXPECT_THAT(run(1, "doctor --remote " + broken, key).out, HasSubstr("cannot be used"));
}

TEST_F(Remote, IsNotChangedByADryRunOrAReadOnlyUrl)
{
    fill();
    const CommandResult planned = run(0, "push --dry-run --json --remote " + url());
    EXPECT_EQ(only(planned)["would_send"], 6);
    EXPECT_FALSE(std::filesystem::exists(folder()));
    EXPECT_EQ(run("push --remote " + url("?read-only")).status, 2);
    EXPECT_FALSE(std::filesystem::exists(folder()));

    ASSERT_EQ(run("push --remote " + url()).status, 0);
    const auto before = snapshot(folder());
    EXPECT_EQ(only(run(0, "push --dry-run --json --remote " + url()))["there"], 5);
    const std::string second = " --remote 'file://" + (dir() / "second").string() + "'";
    const auto both = run(0, "push --json --remote " + url("?read-only") + second).json()["remotes"];
    EXPECT_EQ(both[0]["left_out"], true);
    EXPECT_EQ(both[1]["sent"], 6);
    EXPECT_EQ(run("doctor --remote " + url("?read-only&allow-unsigned")).status, 0);
    EXPECT_EQ(snapshot(folder()), before);
    EXPECT_EQ(run(1, there() + "pull --remote file://" + (dir() / "none").string()).status, 1);
    EXPECT_FALSE(std::filesystem::exists(dir() / "none")) << "reading makes no folder";
}

TEST_F(Remote, GetsWhatProcessesCouldNotSend)
{
    fill();
    const std::string label = "file://" + folder().string(), gone = "images/" + std::string(64, 'a');
    const std::string text = store::to_text(sample_entry(k_decode).header.key);
    ASSERT_EQ(run("push --remote " + url()).status, 0);
    {
        const auto store = open_store();
        for (const std::string& name : {text, gone}) take(store->set_mark(label, store::RemoteMark::unsent, name));
    }
    EXPECT_EQ(only(run(0, "push --json --remote " + url()))["sent"], 2) << "the entry and the profile";
    EXPECT_THAT(take(open_store()->marks(label, store::RemoteMark::unsent)), IsEmpty());
}

TEST_F(Remote, IsCountedOverAllProcesses)
{
    fill();
    const auto key = make_key();
    ASSERT_EQ(run("sign", key).status, 0);
    ASSERT_EQ(run("push --remote " + url(), key).status, 0);
    ASSERT_EQ(run(there() + "pull --remote " + url(), key).status, 0);
    const std::string word = remote::word_of("file://" + folder().string());
    const auto sent = run(0, "stats --json").json()["remotes"];
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0]["remote"], word);
    EXPECT_EQ(sent[0]["puts"], 6);
    EXPECT_EQ(sent[0]["unsent"], nullptr) << "the folder does not know which marks are the remote's";
    ASSERT_EQ(run("push --remote " + url(), key).status, 0);
    EXPECT_EQ(run(0, "stats --json").json()["remotes"][0]["puts"], 7) << "the profile again";

    take(open_store()->set_mark("file://" + folder().string(), store::RemoteMark::unsent,
                                "images/" + std::string(64, 'a')));
    const Environment named{{"WARMGRAPH_REMOTE", "file://" + folder().string()}};
    EXPECT_EQ(run(0, "stats --json", named).json()["remotes"][0]["unsent"], 1);
    const auto fetched = run(0, there() + "stats --json").json()["remotes"];
    ASSERT_EQ(fetched.size(), 1U);
    EXPECT_GT(fetched[0]["hits"], 5);
    EXPECT_GT(fetched[0]["bytes_read"], 0);
    EXPECT_GT(fetched[0]["read_ms"], 0);
    EXPECT_EQ(fetched[0]["write_ms"], 0);
    EXPECT_THAT(run(0, there() + "stats").out, AllOf(HasSubstr("untrusted"), HasSubstr(word)));
    EXPECT_THAT(run(0, "stats --prometheus").out,
                HasSubstr("warmgraph_remote_puts_total{remote=\"" + word + "\"} 7\n"));
    EXPECT_EQ(run("check").status, 0) << "the counters are the cache's own";
    EXPECT_THAT(run(0, "stats --json").json()["functions"][0]["events"], IsEmpty());
}

TEST_F(Remote, IsCountedByACache)
{
    const auto key = make_key();
    CacheOptions options;
    options.model = "toy";
    options.cache_dir = cache().string();
    options.signing.sign_with_file = key.at("WARMGRAPH_SIGN_KEY_FILE");
    options.remote = {"file://" + folder().string()};
    const std::map<std::string, std::string> facts{{"torch", "2.11.0"}};
    const std::string bytes = "pickles";
    Cache(options).put_artifact("torch", facts, as_bytes(bytes));
    EXPECT_EQ(run(0, "stats --json").json()["remotes"][0]["puts"], 1);
    options.cache_dir = (dir() / "there").string();
    const auto found = Cache(options).artifact("torch", facts);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(as_text(*found), bytes);
    EXPECT_EQ(run(0, there() + "stats --json").json()["remotes"][0]["hits"], 1);
}

TEST_F(Remote, ShowsProgressOnATerminal)
{
    fill();
    EXPECT_THAT(run_on_terminal("push --remote " + url(), "").out, HasSubstr("looked at 6 of 6"));
    EXPECT_THAT(run("push --remote " + url()).error, IsEmpty());
}

TEST_F(Remote, IsTriedByDoctorWithAnObjectThatIsRemoved)
{
    const CommandResult tried = run(0, "doctor --json --remote " + url("?allow-unsigned"));
    const auto result = only(tried);
    EXPECT_EQ(result["usable"], true);
    std::set<std::string> works;
    for (const auto& check : result["checks"])
        if (check["works"].get<bool>()) works.insert(check["check"]);
    for (const char* name :
         {"signatures", "reach", "second request", "list", "clock", "write", "read", "range", "create only", "remove"})
        EXPECT_TRUE(works.contains(name)) << name;
    EXPECT_THAT(take(take(store::LocalStore::open(folder(), {.sharing = store::Sharing::group}))->images()), IsEmpty());

    const CommandResult keyless = run(1, "doctor --remote " + url());
    EXPECT_THAT(keyless.out, AllOf(HasSubstr("cannot be used"), HasSubstr("WARMGRAPH_ACCEPT_KEYS_FILE")));
    EXPECT_EQ(run("doctor --remote " + url(), make_key()).status, 0);
}

TEST_F(Remote, KeepsItsSecrets)
{
    const std::string canary = "canary0123456789";
    fill();
    for (const std::string& address :
         {"redis://user:" + canary + "@127.0.0.1:1/0", "http://127.0.0.1:1/x?token=" + canary,
          "s3://bucket/x?user=" + canary + "&password=" + canary + "&endpoint=http://127.0.0.1:1"}) {
        const Environment environment{
            {"WARMGRAPH_REMOTE", address}, {"WARMGRAPH_REMOTE_TOKEN", canary}, {"WARMGRAPH_REMOTE_PASSWORD", canary}};
        for (const char* arguments : {"push", "push --json", "pull", "pull --json", "doctor --remote",
                                      "doctor --remote --json", "doctor", "doctor --json"}) {
            const CommandResult result = run(arguments, environment);
            EXPECT_THAT(result.out + result.error, Not(HasSubstr(canary))) << arguments << address;
            EXPECT_THAT(result.out + result.error, HasSubstr(address.substr(0, address.find(':') + 3)))
                << arguments << ": the remote is named";
        }
        const CommandResult named = run("push --remote '" + address + "'");
        EXPECT_EQ(named.status, 1);
        EXPECT_THAT(named.out + named.error, Not(HasSubstr(canary)));
    }
    EXPECT_THAT(run("doctor", {{"WARMGRAPH_REMOTE", "redis://user:" + canary + "@/0?nonsense"}}).out,
                Not(HasSubstr(canary)));
}

} // namespace
} // namespace warmgraph::test::remote_test
