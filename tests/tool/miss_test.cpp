// Tests the reasons of misses. Real programs miss in their own processes; then the command must show the reason.
#include "child_process.hpp"
#include "command_fixture.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::miss_test {
namespace {

/// A start of a service, with the facts that may differ between starts.
struct Start {
    Policy policy = Policy::read_write;
    std::int64_t count = 64;
    int world_size = 1, rank = 0;
    std::string dtype = "f32";
    int calls = 1; ///< number of calls; each call has one element more than the one before
};

constexpr const char* k_source = R"(
__kernel void add_one(__global const float* x, __global float* y) { size_t i = get_global_id(0); y[i] = x[i] + 1.0f; }
)";

// OpenCL does not survive fork(), so only child processes open a device.
class Missed : public CommandTest {
protected:
    Missed() { ::setenv("POCL_CACHE_DIR", (dir() / "pocl").c_str(), 1); }

    [[nodiscard]] CacheOptions options(const Start& start) const
    {
        CacheOptions options;
        options.model = "toy";
        options.config = {{"dtype", start.dtype}};
        options.cache_dir = cache().string();
        options.policy = start.policy;
        options.world_size = start.world_size;
        options.global_rank = start.rank;
        return options;
    }

    /// Makes the function in a child process and passes it to `body`, whose result is the exit status.
    template <class Body>
    int in_child(const Start& start, Body body)
    {
        ChildProcess child([&] {
            try {
                Device device{"opencl"};
                const Program program = device.program("small", k_source);
                Cache cache{options(start)};
                int status = 0;
                for (std::int64_t count = start.count; count < start.count + start.calls; ++count) {
                    const Spec spec{.inputs = {input("x", f32, {count})},
                                    .outputs = {output("y", f32, {count})},
                                    .code = {program}};
                    Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
                        r.stream().launch(program, "add_one", {.grid = {1, 1, 1}, .block = {1, 1, 1}}, r["x"], r["y"]);
                    });
                    const Buffer x = device.upload<float>(std::vector<float>(static_cast<std::size_t>(count), 1.0F)),
                                 y = device.allocate(static_cast<std::uint64_t>(count) * sizeof(float));
                    status = body(cache, f, x, y);
                    device.synchronize();
                }
                return status;
            } catch (const std::exception& error) {
                std::fprintf(stderr, "child: %s\n", error.what());
                return 98;
            }
        });
        return child.wait();
    }
    /// Makes a start in a child. Returns the outcome of the last call.
    int run_start(const Start& start)
    {
        return in_child(start, [](Cache&, Function& f, const Buffer& x, const Buffer& y) {
            return static_cast<int>(f({{"x", x}, {"y", y}}));
        });
    }
    static constexpr int k_recorded = static_cast<int>(Outcome::recorded), k_eager = static_cast<int>(Outcome::eager),
                         k_replayed = static_cast<int>(Outcome::replayed);
};

TEST_F(Missed, AndWasRecordedIsToldAlthoughItWouldHitNow)
{
    ASSERT_EQ(run_start({}), k_recorded);
    const CommandResult result = run(0, "explain toy/f");
    EXPECT_THAT(result.out, HasSubstr("f would hit, as far as this command can check: 1 variant on disk\n"));
    EXPECT_THAT(result.out, HasSubstr("(read_write, process "));
    EXPECT_THAT(result.out, HasSubstr("): recorded\n  no entry\n"));
    ASSERT_EQ(run_start({}), k_replayed);
    EXPECT_EQ(run("explain toy/f --json").json()["misses"].size(), 1U) << "a hit is no miss";
}

TEST_F(Missed, ByAProcessThatOnlyReadsIsToldWithWhatDiffers)
{
    ASSERT_EQ(run_start({}), k_recorded);
    ASSERT_EQ(run_start({.policy = Policy::read_only, .count = 32}), k_eager);
    const CommandResult result = run(1, "explain toy/f");
    EXPECT_THAT(result.out, HasSubstr("f would miss: 1 variant on disk, "));
    EXPECT_THAT(result.out, HasSubstr("(read_only, process "));
    EXPECT_THAT(result.out, HasSubstr("): ran as it is\n"));
    EXPECT_THAT(result.out, HasSubstr("at that time, the nearest of 1:\n"));
    EXPECT_THAT(result.out, HasSubstr("[64]"));
    EXPECT_THAT(result.out, HasSubstr("[32]"));
    EXPECT_THAT(result.out, HasSubstr("1 miss before it: --all shows them"));
    EXPECT_THAT(run("explain toy/f --all").out, AllOf(HasSubstr("miss 1 of 2"), HasSubstr("miss 2 of 2")));
    const auto miss = run("explain toy/f --json").json()["misses"][0];
    EXPECT_EQ(miss["end"], "ran as it is");
    EXPECT_EQ(miss["policy"], "read_only");
    EXPECT_EQ(miss["variants"], 1);
    EXPECT_EQ(miss["mismatches"][0]["recorded"], "[64]");
    EXPECT_EQ(miss["mismatches"][0]["now"], "[32]");
    EXPECT_GT(miss["agree"], 10);
}

/// The pair has one miss, and the reason names the difference of the forward half.
TEST_F(Missed, AsAPairIsToldOfTheHalfThatMissed)
{
    const auto step = [this](Policy policy, std::int64_t count) {
        ChildProcess child([&] {
            const Device device{"opencl"};
            const Program program = device.program("small", k_source);
            Cache cache{options({.policy = policy})};
            const auto bytes = static_cast<std::uint64_t>(count) * sizeof(float);
            PairSpec spec{.forward = {.inputs = {input("x", f32, {count})}, .outputs = {output("y", f32, {count})}},
                          .backward = {.outputs = {output("dx", f32, {count})}},
                          .saved = {{"h", f32, {64}}}};
            spec.forward.code = {program};
            const auto add_one = [&](Recorder& r, const char* from, const char* to) {
                r.stream().launch(program, "add_one", {.grid = {1, 1, 1}, .block = {1, 1, 1}}, r[from], r[to]);
            };
            Pair pair = cache.wrap_pair(
                "step", device, spec,
                [&](Recorder& r) {
                    add_one(r, "x", "y");
                    add_one(r, "x", "h");
                },
                [&](Recorder& r) { add_one(r, "h", "dx"); });
            const Buffer x = device.upload<float>(std::vector<float>(static_cast<std::size_t>(count), 1.0F)),
                         y = device.allocate(bytes), dx = device.allocate(bytes);
            const ForwardCall call = pair.forward({{"x", x}, {"y", y}});
            const Outcome outcome = pair.backward(call, {{"dx", dx}});
            device.synchronize();
            return call.outcome == outcome ? static_cast<int>(outcome) : 97;
        });
        return child.wait();
    };
    ASSERT_EQ(step(Policy::read_write, 64), k_recorded);
    ASSERT_EQ(step(Policy::read_write, 64), k_replayed);
    ASSERT_EQ(step(Policy::read_only, 32), k_eager);
    const auto miss = run("explain toy/step --json").json()["misses"][0];
    EXPECT_THAT(miss.dump(1), Not(HasSubstr("(absent)")));
    EXPECT_EQ(miss["mismatches"][0]["recorded"], "[64]");
    EXPECT_EQ(miss["mismatches"][0]["now"], "[32]");
    EXPECT_THAT(run("explain toy/step").out, AllOf(HasSubstr("[64]"), Not(HasSubstr("forward.x"))));
    const std::string listed = run("ls").out;
    EXPECT_THAT(listed, HasSubstr("step"));
    EXPECT_THAT(listed, Not(HasSubstr("step.forward")));
    EXPECT_EQ(run("ls --json").json()["variants"], 1);
    EXPECT_THAT(run("show toy/step").out, AllOf(HasSubstr("forward of "), HasSubstr("backward of ")));
    EXPECT_EQ(run("check").status, 0);
}

TEST_F(Missed, AndThrewIsToldAndCountedInTheProcess)
{
    ASSERT_EQ(run_start({}), k_recorded);
    const int status = in_child({.policy = Policy::require_hit, .count = 32},
                                [](Cache& cache, Function& f, const Buffer& x, const Buffer& y) {
                                    try {
                                        f({{"x", x}, {"y", y}});
                                        return 1;
                                    } catch (const Exception& error) {
                                        if (error.code() != ErrorCode::miss_forbidden) return 2;
                                    }
                                    const auto misses = f.misses();
                                    if (cache.statistics().of(ArtifactKind::entries).misses != 1 || misses.size() != 1)
                                        return 3;
                                    const Miss& miss = misses.front();
                                    if (miss.end != "thrown" || miss.variants != 1 || miss.nearest.empty()) return 4;
                                    return miss.differences.front().recorded == "[64]" ? 0 : 5;
                                });
    EXPECT_EQ(status, 0);
    EXPECT_THAT(run("explain toy/f").out, AllOf(HasSubstr("(require_hit, process "), HasSubstr("): thrown\n")));
}

TEST_F(Missed, KeepsTheLastSixteen)
{
    ASSERT_EQ(run_start({}), k_recorded);
    ASSERT_EQ(run_start({.policy = Policy::read_only, .count = 100, .calls = 18}), k_eager);
    const auto misses = run("explain toy/f --json").json()["misses"];
    ASSERT_EQ(misses.size(), 16U);
    EXPECT_EQ(misses[0]["mismatches"][0]["now"], "[117]") << "the newest first";
    EXPECT_EQ(misses[15]["mismatches"][0]["now"], "[102]");
}

TEST_F(Missed, UnderAnotherRankOrConfigurationIsToldWhereItWasRecorded)
{
    ASSERT_EQ(run_start({}), k_recorded);
    ASSERT_EQ(run_start({.policy = Policy::read_only, .world_size = 2, .rank = 1}), k_eager);
    ASSERT_EQ(run_start({.policy = Policy::read_only, .dtype = "f16"}), k_eager);
    const CommandResult rank = run(1, "explain toy/world2global_rank1/f");
    EXPECT_THAT(rank.out, HasSubstr("f would miss: 0 variants on disk, record it: run it once"));
    EXPECT_THAT(rank.out, HasSubstr("also recorded, but not used by this process:\n"));
    EXPECT_THAT(rank.out, HasSubstr("rank: world1global_rank0 there, world2global_rank1 here\n"));
    const CommandResult named = run("explain toy/f");
    EXPECT_THAT(named.out, HasSubstr("config.model.dtype: f32 there, f16 here\n"))
        << "of three that fit, the one that missed last: " << named.out << named.error;
}

TEST_F(Missed, IsToldWhereTheProgramWasBuiltAnewSince)
{
    ASSERT_EQ(run_start({}), k_recorded);
    auto entry = run("show toy/f --json").json()["entries"][0];
    const auto json = run("explain toy/f --json").json();
    EXPECT_THAT(json["binaries_not_here"], IsEmpty()) << "this very program is here";
    EXPECT_EQ(json["would"], "hit");
    auto store = open_store();
    const auto key = store->functions()->at(0);
    const auto variant = store->variants(key)->at(0);
    auto stored = std::move(**store->entry({key, variant.guards_digest}));
    for (auto& fact : stored.header.guards.facts)
        if (fact.name == "binary.path") fact.value = "/bin/true";
    stored.header.key.guards_digest = cachefmt::guards_digest(stored.header.guards);
    publish(*store, stored);
    const CommandResult other = run("explain toy/f");
    EXPECT_THAT(other.out, HasSubstr("code.build_id")) << "another binary lies there: " << other.out;
    for (auto& fact : stored.header.guards.facts)
        if (fact.name == "binary.path") fact.value = "/nowhere/service";
    stored.header.key.guards_digest = cachefmt::guards_digest(stored.header.guards);
    publish(*store, stored);
    EXPECT_THAT(run("explain toy/f").out, HasSubstr("the build id of /nowhere/service is not compared"));
}

TEST_F(Missed, OfAHostileFileIsToldWithAWordAndTheRestGoesOn)
{
    ASSERT_EQ(run_start({}), k_recorded);
    const auto key = open_store()->functions()->at(0);
    const auto file = cache() / key.model_info / key.rank / "f" / "misses.jsonl";
    std::ofstream(file) << "\n{\"id\": \"\x1b[31m\"}\n";
    const CommandResult result = run("explain toy/f");
    EXPECT_EQ(result.status, 0) << "the entry still fits";
    EXPECT_THAT(result.out, HasSubstr("last miss: misses.jsonl: line 2: "));
    EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
    EXPECT_EQ(run_start({}), k_replayed);
    EXPECT_EQ(run_start({.policy = Policy::read_only, .count = 32}), k_eager);
    EXPECT_EQ(run("explain toy/f --json").json()["misses"].size(), 1U) << "the next miss mends it";
}

TEST_F(Missed, IsInTheStatisticsByReason)
{
    ASSERT_EQ(run_start({}), k_recorded);
    ASSERT_EQ(run_start({.count = 32}), k_recorded);
    ASSERT_EQ(run_start({}), k_replayed);
    std::map<std::string, nlohmann::json> events;
    const auto json = run("stats toy/f --json").json();
    for (const auto& event : json["total"]["events"])
        events[event["kind"].get<std::string>() + " " + event["reason"].get<std::string>()] = event;
    EXPECT_EQ(events["miss no_entry"]["count"], 1);
    EXPECT_EQ(events["miss input"]["count"], 1);
    EXPECT_EQ(events["recorded published"]["count"], 2);
    EXPECT_EQ(events["hit restored"]["count"], 1);
    EXPECT_GT(events["hit restored"]["bytes"], 1000);
}

TEST_F(Missed, AtStartTheLogSaysWhatFits)
{
    ASSERT_EQ(run_start({}), k_recorded);
    const auto key = open_store()->functions()->at(0);
    auto stored = std::move(**open_store()->entry({key, open_store()->variants(key)->at(0).guards_digest}));
    for (auto& fact : stored.header.guards.facts)
        if (fact.name == "driver.version") fact.value = "0.1";
    stored.header.key.guards_digest = cachefmt::guards_digest(stored.header.guards);
    publish(*open_store(), stored);
    const auto log = dir() / "log.txt";
    ChildProcess child([&] {
        warmgraph::log().set_level(spdlog::level::info);
        if (std::freopen(log.c_str(), "w", stderr) == nullptr) return 97;
        return run_start({});
    });
    EXPECT_EQ(child.wait(), k_replayed);
    const std::string text = text_of(log);
    EXPECT_THAT(text, HasSubstr("opened " + cache().string() +
                                " for toy on opencl:0: 2 entries, 1 fit this machine; "
                                "1 not: driver.version 0.1 recorded, "));
    EXPECT_THAT(text, HasSubstr("loaded toy/world1global_rank0/f "));
    EXPECT_THAT(text, HasSubstr(", warmgraph " WARMGRAPH_VERSION ", format ")) << "when, and by which version";
}

} // namespace
} // namespace warmgraph::test::miss_test
