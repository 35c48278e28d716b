// Uses `warmgraph bundle` as an operator does.
#include <thread>

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

namespace warmgraph::test::bundle_test {
namespace {

class BundleCommand : public CommandTest {
protected:
    cachefmt::FunctionKey prompt() const { return {k_decode.model_info, k_decode.rank, "prompt"}; }
    static cachefmt::Guards guards_with(const std::string& fact, const std::string& value)
    {
        auto guards = sample_guards();
        guards.facts.insert(guards.facts.begin() + 1, {fact, value, cachefmt::Role::must_match});
        return guards;
    }
    /// Publishes two entries with an image, and a tombstone. The entries fit when the variable WG_TEST is 4.
    void publish_some() const
    {
        auto store = open_store();
        const Bytes code(5000, std::byte{'c'});
        cachefmt::Entry decode = sample_entry(k_decode);
        decode.graph.images.push_back({sha256(code), code.size(), {}, "kernels"});
        decode.header.info.image_count = 1;
        if (!store->publish_image(code)) throw std::runtime_error("no image");
        publish(*store, decode);
        publish(*store, sample_entry(prompt()));
        publish(*store, tombstone(k_decode, guards_with("config.other", "1")));
    }
    /// Stores a program for sm_90, configurations of a kernel and of a module on sm_80, and a profile of `prompt`.
    void put_artifacts(const std::string& written = "2026-11-24T00:30:00Z") const
    {
        const auto store = open_store();
        autotune::ConfigLibrary tuned(store->tier());
        autotune::ModuleConfigs module{"model", sha256(as_bytes("module"))};
        autotune::BestConfig best = autotune::test::sample_best_config();
        best.device = {{"backend", "cuda"}, {"device.architecture", "sm_80"}};
        best.written = written;
        module.configs = {{best.key, best}};
        const bool done = precompile::ProgramLibrary(*store, {}).put(precompile::test::sample_program()).has_value() &&
                          tuned.put(best).has_value() && tuned.modules().put(module).has_value() &&
                          profile::ProfileLibrary(store->tier()).merge(profile::test::sample_profile()).has_value();
        if (!done) throw std::runtime_error("the samples cannot be stored");
    }
    const std::map<std::string, std::string> m_fits{{"WG_TEST", "4"}};
};

TEST_F(BundleCommand, LeavesADeviceOrAPipeWhatItIsAndWritesToIt)
{
    publish_some();
    const auto pipe = dir() / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    ASSERT_EQ(run("bundle create whole.wgb").status, 0);
    for (const std::string action : {"create pipe", "merge pipe whole.wgb", "strip whole.wgb pipe --arch unknown"}) {
        std::thread reader([&] {
            static_cast<void>(std::system(("cat " + pipe.string() + " >" + (dir() / "got.wgb").string()).c_str()));
        });
        const CommandResult done = run("bundle " + action);
        reader.join();
        EXPECT_EQ(done.status, 0) << action << done.error;
        EXPECT_TRUE(std::filesystem::is_fifo(pipe)) << action;
        EXPECT_EQ(run("check got.wgb").status, 0) << action;
    }
    const CommandResult full = run(3, "bundle create /dev/full");
    EXPECT_THAT(full.error, HasSubstr("cannot write '/dev/full': No space left on device"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(BundleCommand, WritesToStandardOutputOnRequest)
{
    publish_some();
    const CommandResult done = run(0, "bundle create -");
    std::ofstream(dir() / "got.wgb", std::ios::binary) << done.out;
    EXPECT_EQ(run("check got.wgb").status, 0);
    EXPECT_THAT(run("bundle create - --json").error, HasSubstr("'-' is standard output, where --json writes"));
}

TEST_F(BundleCommand, IsReadFromAPipe)
{
    publish_some();
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    std::filesystem::create_directories(dir() / "temporary");
    const std::map<std::string, std::string> environment{{"WG_TEST", "4"}, {"TMPDIR", (dir() / "temporary").string()}};
    for (const std::string file : {"/dev/stdin", "-"}) {
        for (const std::string action : {"ls ", "show ", "check ", "load --cache-dir to-be-filled ", "diff cache.wgb ",
                                         "merge again.wgb ", "strip again.wgb --arch unknown "}) {
            std::string words = "bundle " + action + file;
            if (action.starts_with("strip")) words = "bundle strip " + file + " again.wgb --arch unknown";
            const CommandResult result = run_behind("cat cache.wgb", words, environment);
            EXPECT_EQ(result.status, 0) << words << ": " << result.out << result.error;
        }
        EXPECT_EQ(run_behind("cat cache.wgb", "check " + file, environment).status, 0);
        EXPECT_EQ(run("bundle diff cache.wgb again.wgb").status, 0);
        std::filesystem::remove_all(dir() / "to-be-filled");
    }
    const auto pipe = dir() / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::thread writer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200)); // in this time the command waits for the pipe
        static_cast<void>(std::system(("cat " + (dir() / "cache.wgb").string() + " >" + pipe.string()).c_str()));
    });
    EXPECT_EQ(run("bundle load pipe --cache-dir filled", environment).status, 0);
    writer.join();
    EXPECT_EQ(run_behind("true", "check - <cache.wgb").status, 0) << "a file is read where it lies";
    EXPECT_TRUE(std::filesystem::is_empty(dir() / "temporary")) << "nothing is left over";
}

TEST_F(BundleCommand, ReadsNoMoreOfAPipeThanABundle)
{
    publish_some();
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    EXPECT_THAT(run("bundle ls /dev/zero").error, HasSubstr("the file is not a bundle"));
    EXPECT_THAT(run_behind("true", "bundle ls -").error, HasSubstr("the bundle has 0 bytes"));
    EXPECT_THAT(run_behind("head -c 400 cache.wgb", "bundle ls -").error, HasSubstr("truncated, or has extra bytes"));
    EXPECT_THAT(run_behind("(cat cache.wgb; cat /dev/zero)", "bundle ls -").error,
                HasSubstr("truncated, or has extra bytes"));
    EXPECT_THAT(run_on_terminal("bundle ls -", "").out, HasSubstr("is a terminal"));
}

TEST_F(BundleCommand, CarriesACacheToAnotherFolder)
{
    publish_some();
    const auto made = run(0, "bundle create cache.wgb");
    EXPECT_THAT(made.out, HasSubstr("wrote 2 entries"));
    EXPECT_THAT(made.out, HasSubstr("1 image (4.9 KiB)"));
    EXPECT_THAT(made.out, HasSubstr("records of refusals are not copied"));
    const auto loaded = run(0, "bundle load cache.wgb --json --cache-dir elsewhere", m_fits);
    EXPECT_EQ(loaded.json()["loaded"][0]["count"], 2);
    EXPECT_THAT(loaded.json()["skipped"], IsEmpty());
    EXPECT_EQ(run("check --cache-dir elsewhere --accept-file none").status, 1) << "no such key file";
    EXPECT_EQ(run("check --cache-dir elsewhere").status, 0);
    EXPECT_THAT(run("ls --cache-dir elsewhere").out, HasSubstr("2 functions, 2 variants"));
    const auto again = run(0, "bundle load cache.wgb --cache-dir elsewhere", m_fits);
    EXPECT_THAT(again.out, HasSubstr("loaded nothing"));
    EXPECT_THAT(again.out, HasSubstr("3 objects already in the cache"));
}

TEST_F(BundleCommand, SaysBeforeItIsOpenedWhatFits)
{
    publish_some();
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    const auto fits = run(0, "bundle check cache.wgb", m_fits);
    EXPECT_THAT(fits.out, HasSubstr("2 of 2 entries fit"));
    const auto before = snapshot(cache());
    const auto not_here = run(1, "bundle check cache.wgb");
    EXPECT_THAT(not_here.out, HasSubstr("does not fit, because of env.WG_TEST"));
    EXPECT_THAT(not_here.out, HasSubstr("0 of 2 entries fit"));
    const auto loaded = run(1, "bundle load cache.wgb --json --cache-dir elsewhere");
    EXPECT_THAT(loaded.json()["loaded"], IsEmpty());
    EXPECT_EQ(loaded.json()["skipped"].size(), 3U) << "two entries, and the image that only they need";
    EXPECT_FALSE(std::filesystem::exists(dir() / "elsewhere" / "images"));
    EXPECT_EQ(snapshot(cache()), before);
}

TEST_F(BundleCommand, IsMadeOfACompressedFolderToo)
{
    const std::string image(100'000, 'x');
    {
        store::StoreOptions options;
        options.packings.images = {3, 0};
        auto store = *store::LocalStore::open(cache(), options);
        auto entry = sample_entry(k_decode);
        entry.graph.images = {{sha256(as_bytes(image)), image.size(), {}, "kernels"}};
        entry.header.info.image_count = 1;
        ASSERT_TRUE(store->publish_image(as_bytes(image)));
        publish(*store, entry);
        ASSERT_LT(store->images()->at(0).second, 10'000U);
    }
    EXPECT_EQ(run("check").status, 0);
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    EXPECT_EQ(run("check cache.wgb").status, 0);
    EXPECT_EQ(run("bundle load cache.wgb --cache-dir elsewhere", m_fits).status, 0);
    EXPECT_EQ(run("check --cache-dir elsewhere").status, 0);
    EXPECT_EQ(run("ls --json --cache-dir elsewhere").json()["image_bytes"], image.size());
    const CommandResult odd = run("ls", {{"WARMGRAPH_COMPRESSION", "images=hard"}});
    EXPECT_EQ(odd.status, 0) << odd.error;
    EXPECT_THAT(odd.error, HasSubstr("WARMGRAPH_COMPRESSION is 'images=hard'")) << "what only tunes is a warning";
}

TEST_F(BundleCommand, BeginsWithTheEnvironmentThatAllShare)
{
    publish(*open_store(), sample_entry(k_decode, guards_with("device.architecture", "nowhere")));
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    const auto check = run(1, "bundle check cache.wgb", m_fits);
    EXPECT_THAT(check.out,
                ::testing::MatchesRegex("environment key [0-9a-f]{12} recorded, [0-9a-f]{12} here: nothing fits "
                                        "\\(1 entry\\): device.architecture nowhere recorded, [^\n]*\n"
                                        "environment: device.architecture nowhere\n(.|\n)*"));
    const auto json = run("bundle check cache.wgb --json", m_fits).json();
    EXPECT_EQ(json["environment"]["verdict"], "does_not");
    EXPECT_EQ(json["entries"][0]["field"], "device.architecture");
}

TEST_F(BundleCommand, TellsANewerDriverFromAnother)
{
    publish(*open_store(), sample_entry(k_decode, guards_with("driver.version", "0.1")));
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    EXPECT_THAT(run("bundle check cache.wgb", m_fits).out, HasSubstr("fits if a newer driver.version is accepted"));
    EXPECT_EQ(run("bundle load cache.wgb --cache-dir elsewhere", m_fits).status, 1);
    EXPECT_EQ(run("bundle check cache.wgb --accept-newer-driver", m_fits).status, 0);
    EXPECT_EQ(run("bundle load cache.wgb --cache-dir elsewhere --accept-newer-driver", m_fits).status, 0);
}

TEST_F(BundleCommand, ShowsWhatItHolds)
{
    publish_some();
    ASSERT_EQ(run("bundle create cache.wgb --func decode").status, 0);
    const auto ls = run(0, "bundle ls cache.wgb");
    EXPECT_THAT(ls.out, HasSubstr("tiny-llama/world1global_rank0/decode"));
    EXPECT_THAT(ls.out, HasSubstr("not signed"));
    EXPECT_EQ(run("bundle ls cache.wgb --json").json()["members"].size(), 2U);
    EXPECT_THAT(run("bundle show cache.wgb").out, HasSubstr("env.WG_TEST = 4"));
    EXPECT_EQ(run("bundle show cache.wgb --json").json()["entries"][0]["facts"]["config.dtype"], "f32");
    EXPECT_EQ(run("check cache.wgb").status, 0);
    EXPECT_EQ(run("bundle create other.wgb --func prom").status, 1) << "no such function";
    EXPECT_FALSE(std::filesystem::exists(dir() / "other.wgb"));
}

TEST_F(BundleCommand, FindsWhatIsDamaged)
{
    publish_some();
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    std::fstream file(dir() / "cache.wgb", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(300);
    file.put('\x7f');
    file.close();
    const auto check = run(1, "check cache.wgb");
    EXPECT_THAT(check.out, HasSubstr("digest does not match"));
    EXPECT_THAT(check.out, HasSubstr("cache.wgb: 1 member with problems (3 members); not signed\n"));
    const auto json = run("check cache.wgb --json").json();
    EXPECT_EQ(json["damage"][0]["path"], "cache.wgb");
    EXPECT_EQ(json["damage"][0]["code"], "corrupt");
    EXPECT_EQ(json["bundles"][0]["members"], 3);
    EXPECT_EQ(json["left"], 1);
    const auto loaded = run("bundle load cache.wgb --cache-dir elsewhere", m_fits);
    EXPECT_EQ(loaded.status, 0) << "the rest works";
    EXPECT_THAT(loaded.out, HasSubstr("loaded 1 entry"));
    std::filesystem::resize_file(dir() / "cache.wgb", 100);
    EXPECT_THAT(run("check cache.wgb").out, HasSubstr("its header alone takes"));
    for (const char* action : {"ls", "show", "check", "load"})
        EXPECT_THAT(run(std::string("bundle ") + action + " cache.wgb").error, HasSubstr("its header alone takes"))
            << action;
}

TEST_F(BundleCommand, IsSignedAndHeldToIt)
{
    publish_some();
    ASSERT_EQ(run("sign --new-key release.key --id release --kind ed25519").status, 0);
    ASSERT_EQ(run("bundle create unsigned.wgb").status, 0);
    ASSERT_EQ(run("sign --key-file release.key").status, 0);
    ASSERT_EQ(run("bundle create cache.wgb --key-file release.key").status, 0);
    EXPECT_THAT(run("bundle ls cache.wgb").out, HasSubstr("signed with 'release', which is not accepted here"));
    EXPECT_THAT(run("bundle ls cache.wgb --accept-file release.key.pub").out, HasSubstr("signed with 'release'\n"));
    auto strict = m_fits;
    strict["WARMGRAPH_REQUIRE_SIGNED"] = "1";
    strict["WARMGRAPH_ACCEPT_KEYS_FILE"] = (dir() / "release.key.pub").string();
    const auto refused = run(1, "bundle load unsigned.wgb --cache-dir elsewhere", strict);
    EXPECT_THAT(refused.out, HasSubstr("is not signed"));
    const auto loaded = run(0, "bundle load cache.wgb --cache-dir elsewhere", strict);
    EXPECT_THAT(loaded.out, HasSubstr("loaded 2 entries"));
    const auto check = run("check --json unsigned.wgb cache.wgb --accept-file release.key.pub");
    EXPECT_EQ(check.status, 1) << "as it is loaded where signatures are required";
    EXPECT_EQ(check.json()["damage"][0]["code"], "untrusted");
    EXPECT_EQ(check.json()["bundles"][0]["signed_by"], nullptr);
    EXPECT_EQ(check.json()["bundles"][1]["signed_by"], "release");
    EXPECT_THAT(run("check unsigned.wgb cache.wgb --accept-file release.key.pub").out,
                HasSubstr("cache.wgb: no damage found (3 members); signed with 'release'\n"));
}

TEST_F(BundleCommand, CarriesWhatPyTorchCompiledOnlyWhereItIsAskedForAndSigned)
{
    publish_some();
    ASSERT_EQ(run("sign --new-key release.key --id release --kind ed25519").status, 0);
    cachefmt::Trust trust;
    trust.sign_with = std::make_shared<const SigningKey>(
        std::move(store::read_key_file((dir() / "release.key").string()).value().front()));
    const auto put = [&](const std::string& model, const std::string& bytes) {
        const store::TorchFacts facts{{"torch", "2.11.0"}, {"model", model}};
        ASSERT_TRUE(put_torch(*open_store(), facts, "2026-11-25T06:00:00Z", as_bytes(bytes), trust));
    };
    put("tiny-llama", "pickles");
    put("other", "more pickles");
    ASSERT_EQ(run("bundle create plain.wgb --key-file release.key").status, 0);
    EXPECT_THAT(run("bundle ls plain.wgb").out, Not(HasSubstr("torch/")));
    const auto no_key = run("bundle create none.wgb --kind torch");
    EXPECT_NE(no_key.status, 0);
    EXPECT_THAT(no_key.error, HasSubstr("give --key-file, or set WARMGRAPH_SIGN_KEY_FILE"));
    EXPECT_FALSE(std::filesystem::exists(dir() / "none.wgb"));
    EXPECT_THAT(run("bundle create none.wgb --kind pickles").error,
                HasSubstr("--kind has the kind 'pickles': expected entries"));

    const auto made = run(0, "bundle create cache.wgb --kind entries,torch --key-file release.key");
    EXPECT_THAT(made.out, HasSubstr("2 PyTorch artifacts"));
    ASSERT_EQ(run("bundle create one.wgb --kind entries,torch --model tiny-llama --key-file release.key").status, 0);
    EXPECT_THAT(run("bundle show cache.wgb").out, HasSubstr("torch = 2.11.0"));
    EXPECT_THAT(run("bundle show one.wgb").out, Not(HasSubstr("model = other")));
    EXPECT_EQ(run("check cache.wgb").status, 0);
    EXPECT_THAT(run("bundle diff plain.wgb one.wgb").out, HasSubstr(".mega_cache  only in the second"));
    const auto check = run(0, "bundle check cache.wgb --accept-file release.key.pub", m_fits);
    EXPECT_THAT(check.out, HasSubstr("only PyTorch can tell"));
    EXPECT_THAT(run("bundle check cache.wgb", m_fits).out, HasSubstr("the key that signed the bundle is not accepted"));
    EXPECT_THAT(run("bundle merge open.wgb cache.wgb").out, HasSubstr("only be put into a signed bundle"));
    EXPECT_THAT(run("bundle ls open.wgb").out, Not(HasSubstr("torch/")));

    const auto untrusted = run(0, "bundle load cache.wgb --cache-dir a", m_fits);
    EXPECT_THAT(untrusted.out, HasSubstr("key 'release' is not accepted"));
    EXPECT_FALSE(std::filesystem::exists(dir() / "a" / "torch"));
    EXPECT_EQ(run("bundle load cache.wgb --cache-dir b --accept-file release.key.pub", m_fits).status, 0);
    EXPECT_TRUE(std::filesystem::exists(dir() / "b" / "torch"));
    EXPECT_THAT(run("clear --kind torch --cache-dir b --yes").out, HasSubstr("2 PyTorch artifacts"));
}

TEST_F(BundleCommand, IsMergedComparedAndStripped)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards_with("device.architecture", "sm_80")));
    publish(*store, sample_entry(prompt(), guards_with("device.architecture", "sm_90")));
    ASSERT_EQ(run("bundle create a.wgb --func decode").status, 0);
    ASSERT_EQ(run("bundle create b.wgb --func prompt").status, 0);
    ASSERT_EQ(run("bundle create all.wgb").status, 0);
    ASSERT_EQ(run("bundle merge both.wgb a.wgb b.wgb a.wgb").status, 0);
    const auto same = run(0, "bundle diff all.wgb both.wgb");
    EXPECT_EQ(same.out, "both hold the same\n");
    const auto differs = run(1, "bundle diff both.wgb a.wgb --json");
    EXPECT_EQ(differs.json()["differences"].size(), 1U);
    EXPECT_EQ(differs.json()["differences"][0]["difference"], "only in the first");
    ASSERT_EQ(run("bundle strip both.wgb small.wgb --arch sm_80").status, 0);
    EXPECT_EQ(run("bundle diff small.wgb a.wgb").status, 0);
    EXPECT_EQ(run("bundle strip both.wgb none.wgb --arch sm_70").status, 1);
    EXPECT_FALSE(std::filesystem::exists(dir() / "none.wgb"));
    EXPECT_EQ(run("check both.wgb").status, 0);
}

/// Promise H19: the key that signs the new bundle must not vouch for members that `load` refuses.
TEST_F(BundleCommand, MergesAndStripsOnlyWhatItWouldLoad)
{
    publish_some();
    ASSERT_EQ(run("sign --new-key mine.key --id mine").status, 0);
    const auto let_others_write = [&] {
        std::filesystem::permissions(dir() / "theirs.wgb", std::filesystem::perms::others_write,
                                     std::filesystem::perm_options::add);
    };
    ASSERT_EQ(run("bundle create theirs.wgb").status, 0);
    let_others_write();
    for (const std::string action :
         {"load theirs.wgb", "merge new.wgb theirs.wgb", "strip theirs.wgb new.wgb --arch unknown"}) {
        const auto refused = run("bundle " + action);
        EXPECT_EQ(refused.status, 3) << action;
        EXPECT_THAT(refused.error, HasSubstr("can be written by other users")) << action;
    }
    EXPECT_THAT(run("check theirs.wgb").out, HasSubstr("can be written by other users"));
    const auto none = run(1, "bundle merge new.wgb theirs.wgb --key-file mine.key");
    EXPECT_THAT(none.error, HasSubstr("is not signed"));
    EXPECT_FALSE(std::filesystem::exists(dir() / "new.wgb"));
    ASSERT_EQ(run("sign --key-file mine.key").status, 0);
    ASSERT_EQ(run("bundle create theirs.wgb --key-file mine.key").status, 0);
    let_others_write();
    EXPECT_EQ(run("bundle merge new.wgb theirs.wgb --key-file mine.key").status, 0) << "an accepted key signed it";
}

TEST_F(BundleCommand, CarriesProgramsTunedConfigurationsAndProfiles)
{
    publish_some();
    put_artifacts();
    const auto made = run(0, "bundle create cache.wgb");
    EXPECT_THAT(made.out, HasSubstr("1 compiled program"));
    EXPECT_THAT(made.out, HasSubstr("2 tuned configurations"));
    EXPECT_THAT(made.out, HasSubstr("1 shape profile"));
    EXPECT_EQ(run("check cache.wgb").status, 0);
    EXPECT_THAT(run("bundle ls cache.wgb").out, HasSubstr("compiled/"));
    const auto show = run("bundle show cache.wgb");
    EXPECT_THAT(show.out, HasSubstr("matmul for sm_90, by NVRTC 13.0"));
    EXPECT_THAT(show.out, HasSubstr("/prompt: 5 calls"));
    // The other artifacts were made for a GPU that this machine does not have. A profile fits everywhere.
    const auto loaded = run(0, "bundle load cache.wgb --json --cache-dir elsewhere", m_fits);
    ASSERT_EQ(loaded.json()["loaded"].size(), 3U) << loaded.out;
    EXPECT_EQ(loaded.json()["loaded"][2]["kind"], "profiles");
    EXPECT_EQ(loaded.json()["skipped"].size(), 3U);
    EXPECT_THAT(loaded.json()["skipped"].dump(), HasSubstr("does not fit, because of backend"));
    EXPECT_EQ(run("profile --cache-dir elsewhere").status, 0);
}

TEST_F(BundleCommand, SaysOfEachKindWhetherItFits)
{
    put_artifacts();
    ASSERT_EQ(run("bundle create cache.wgb").status, 0);
    const auto check = run(1, "bundle check cache.wgb");
    EXPECT_THAT(check.out, HasSubstr("does not fit, because of backend"));
    EXPECT_THAT(check.out, HasSubstr("1 of 4 other objects fit"));
    const auto json = run("bundle check cache.wgb --json").json();
    EXPECT_EQ(json["others"].size(), 4U);
    EXPECT_EQ(json["others_fitting"], 1);
    EXPECT_EQ(run("bundle check cache.wgb --kind profiles").status, 0);
}

TEST_F(BundleCommand, ChoosesKinds)
{
    publish_some();
    put_artifacts();
    const auto kinds = [&](const std::string& options) {
        std::string found;
        if (run("bundle create chosen.wgb " + options).status != 0) return std::string("none");
        const auto listed = run("bundle ls chosen.wgb --json").json();
        for (const auto& member : listed["members"]) found += member["kind"].get<std::string>() + " ";
        return found;
    };
    EXPECT_EQ(kinds("--kind compiled,profiles"), "compiled profiles ");
    EXPECT_EQ(kinds("--kind entries"), "images entries entries ");
    EXPECT_EQ(kinds("--func decode"), "images entries ") << "what is of no function stays out";
    EXPECT_EQ(kinds("--func prompt --kind entries,compiled"), "entries compiled ");
    EXPECT_EQ(kinds("--model no-such-model"), "none");
    EXPECT_THAT(run("bundle create chosen.wgb --kind images").error,
                HasSubstr("expected entries, compiled, tuned, profiles or torch"));
}

TEST_F(BundleCommand, StripsProgramsAndTunedConfigurationsByTheirArchitectures)
{
    put_artifacts();
    ASSERT_EQ(run("bundle create all.wgb").status, 0);
    const auto kinds = [&](const std::string& architectures) {
        std::string found;
        EXPECT_EQ(run("bundle strip all.wgb small.wgb --arch " + architectures).status, 0);
        const auto listed = run("bundle ls small.wgb --json").json();
        for (const auto& member : listed["members"]) found += member["kind"].get<std::string>() + " ";
        return found;
    };
    EXPECT_EQ(kinds("sm_90"), "compiled profiles ");
    EXPECT_EQ(kinds("sm_80,sm_70"), "tuned tuned profiles ");
    const auto differs = run(1, "bundle diff all.wgb small.wgb");
    EXPECT_THAT(differs.out, HasSubstr("only in the first"));
}

TEST_F(BundleCommand, TellsApartWhatBothHaveOtherwise)
{
    put_artifacts();
    ASSERT_EQ(run("bundle create a.wgb").status, 0);
    put_artifacts("2026-11-25T00:00:00Z");
    ASSERT_EQ(run("bundle create b.wgb").status, 0);
    EXPECT_THAT(run("bundle diff a.wgb b.wgb").out, HasSubstr("made apart"));
    EXPECT_EQ(run("bundle diff a.wgb a.wgb").status, 0);
}

TEST_F(BundleCommand, SaysHowItIsUsed)
{
    EXPECT_EQ(run("bundle").status, 2);
    EXPECT_THAT(run("bundle lode x.wgb").error, HasSubstr("load"));
    EXPECT_THAT(run("bundle diff x.wgb").error, HasSubstr("two bundles"));
    EXPECT_THAT(run("bundle strip x.wgb y.wgb").error, HasSubstr("--arch"));
    EXPECT_EQ(run("bundle ls none.wgb").status, 1);
    EXPECT_EQ(run("bundle create cache.wgb --cache-dir nowhere").status, 1);
    EXPECT_FALSE(std::filesystem::exists(dir() / "nowhere"));
}

} // namespace
} // namespace warmgraph::test::bundle_test
