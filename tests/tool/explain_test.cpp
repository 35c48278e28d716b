#include "command_fixture.hpp"
#include "warmgraph/backends/opencl.hpp"
#include "warmgraph/guards/evaluate.hpp"
#include "warmgraph/guards/json.hpp"

namespace warmgraph::test::explain_test {
namespace {

class Explain : public CommandTest {
protected:
    /// Guards with the facts of the first OpenCL device and of a function on this device, as the facade records them.
    static cachefmt::Guards guards_here()
    {
        const auto device = take(backends::make_opencl_backend()->open("0"));
        cachefmt::Guards guards = sample_guards();
        for (const cachefmt::Fact& fact : device->facts()) guards.facts.push_back(fact);
        warmgraph::guards::canonicalize(guards.facts);
        return guards;
    }
    static cachefmt::Fact& fact(cachefmt::Guards& guards, const std::string& name)
    {
        for (cachefmt::Fact& fact : guards.facts)
            if (fact.name == name) return fact;
        throw std::runtime_error("no fact " + name);
    }
    static void leave_miss(store::LocalStore& store, const cachefmt::FunctionKey& key, const cachefmt::Guards& guards)
    {
        store::Miss miss;
        miss.id = "1";
        miss.time = "2026-11-23T10:11:12Z";
        miss.reason = "no entry";
        miss.call = cachefmt::guards_digest(guards);
        store.note_miss(key, miss, guards::to_json(guards));
    }
    const std::map<std::string, std::string> k_environment{{"WG_TEST", "4"}};
};

TEST_F(Explain, SaysThatTheFunctionWouldHit)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards_here()));
    const CommandResult result = run(0, "explain tiny-llama/decode", k_environment);
    EXPECT_THAT(result.out, HasSubstr("decode would hit, as far as this command can check: 1 variant on disk"));
    EXPECT_EQ(run("explain tiny-llama/decode --json", k_environment).json()["would"], "hit");
}

TEST_F(Explain, NamesDeviceFactsAndVariablesThatDifferHere)
{
    auto guards = guards_here();
    fact(guards, "device.units").value += "0";
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards));
    const CommandResult result = run("explain tiny-llama/decode", {{"WG_TEST", "8"}});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.out, HasSubstr("decode would miss: 1 variant on disk, 2 facts differ"));
    EXPECT_THAT(result.out, HasSubstr("device.units"));
    EXPECT_THAT(result.out, HasSubstr("set WG_TEST=4, or record again"));
    EXPECT_THAT(result.out, HasSubstr("all other facts ("));
    EXPECT_THAT(run("explain tiny-llama/decode").out, HasSubstr("(unset)"));
}

TEST_F(Explain, AcceptsANewerDriverWhenAsked)
{
    auto guards = guards_here();
    const std::string now = fact(guards, "driver.version").value;
    fact(guards, "driver.version").value = now.substr(0, now.find_first_of("0123456789")) + "0.1";
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards));
    const CommandResult strict = run(1, "explain tiny-llama/decode", k_environment);
    EXPECT_THAT(strict.out, HasSubstr("relax with accept_newer_driver (same or newer)"));
    EXPECT_EQ(run("explain tiny-llama/decode --accept-newer-driver", k_environment).status, 0);
}

TEST_F(Explain, ComparesTheLastMissWithTheNearestVariant)
{
    const auto guards = guards_here();
    auto far = guards;
    fact(far, "config.dtype").value = "f16";
    far.tensors[0].sizes = {7};
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards));
    publish(*store, sample_entry(k_decode, far));
    auto missed = guards;
    missed.tensors[0].dtype = DType::i64;
    leave_miss(*store, k_decode, missed);
    store.reset();

    const CommandResult result = run(1, "explain tiny-llama/decode", k_environment);
    EXPECT_THAT(result.out, HasSubstr("decode would miss: 2 variants on disk, the nearest differs in 1 fact"));
    EXPECT_THAT(result.out, HasSubstr("input token: dtype"));
    EXPECT_THAT(result.out, HasSubstr("all other facts ("));

    const auto json = run("explain tiny-llama/decode --json", k_environment).json();
    EXPECT_EQ(json["would"], "miss");
    EXPECT_EQ(json["comparisons"][0]["against"], "last_miss");
    EXPECT_EQ(json["comparisons"][0]["variant"], to_hex(cachefmt::guards_digest(guards)));
    EXPECT_EQ(json["comparisons"][0]["mismatches"][0]["recorded"], "i32");
    EXPECT_EQ(json["comparisons"][0]["mismatches"][0]["now"], "i64");
}

TEST_F(Explain, ForgivesAMissThatWasRecordedSince)
{
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards_here()));
    leave_miss(*store, k_decode, guards_here());
    store.reset();
    EXPECT_EQ(run("explain tiny-llama/decode", k_environment).status, 0);
}

TEST_F(Explain, ShowsATombstoneWithReasonAndDifference)
{
    auto store = open_store();
    publish(*store, tombstone(k_decode, guards_here()));
    const CommandResult result = run(1, "explain tiny-llama/decode", k_environment);
    EXPECT_THAT(result.out, HasSubstr("decode would be refused"));
    EXPECT_THAT(result.out, HasSubstr("recompiled"));
    EXPECT_THAT(result.out, HasSubstr("`warmgraph clear --func tiny-llama/decode`"));
    EXPECT_THAT(result.out, HasSubstr("node 0 (fill): size 4 against 8"));
    EXPECT_EQ(run("explain tiny-llama/decode --json", k_environment).json()["would"], "refuse");
}

TEST_F(Explain, TreatsADeviceThatIsNotHereAsUnknown)
{
    auto guards = guards_here();
    guards.tensors[0].device = "opencl:99";
    auto store = open_store();
    publish(*store, sample_entry(k_decode, guards));
    const CommandResult result = run(1, "explain tiny-llama/decode", k_environment);
    EXPECT_THAT(result.out, HasSubstr("unknown"));
    EXPECT_THAT(result.out, HasSubstr("device: "));
}

TEST_F(Explain, SurvivesDamagedEntriesAndADamagedMiss)
{
    auto store = open_store();
    auto guards = guards_here();
    const auto good = sample_entry(k_decode, guards);
    fact(guards, "config.dtype").value = "f16";
    const auto bad = sample_entry(k_decode, guards);
    publish(*store, good);
    publish(*store, bad);
    store->note_miss(k_decode, {.id = "1", .time = "now", .host = {}, .policy = {}, .reason = {}}, "{\"facts\": 7}");
    store.reset();
    std::ofstream(path_of(bad), std::ios::binary | std::ios::trunc) << "short";
    const CommandResult result = run(0, "explain tiny-llama/decode", k_environment);
    EXPECT_THAT(result.out, HasSubstr("cannot be used"));
    EXPECT_THAT(result.out, HasSubstr("last miss: guards in JSON cannot be read"));

    std::ofstream(path_of(good), std::ios::binary | std::ios::trunc) << "short";
    const CommandResult none = run(1, "explain tiny-llama/decode", k_environment);
    EXPECT_THAT(none.out, HasSubstr("2 variants on disk, none of them can be read"));
}

TEST_F(Explain, ChangesNothingOnDisk)
{
    auto store = open_store();
    const auto entry = sample_entry(k_decode, guards_here());
    publish(*store, entry);
    const auto before = std::filesystem::last_write_time(path_of(entry));
    static_cast<void>(run("explain tiny-llama/decode", k_environment));
    static_cast<void>(run("show tiny-llama/decode"));
    EXPECT_EQ(std::filesystem::last_write_time(path_of(entry)), before);
    EXPECT_EQ(run("ls --json").json()["functions"][0]["hits"], 0);
}

} // namespace
} // namespace warmgraph::test::explain_test
