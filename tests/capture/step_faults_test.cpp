// A driver call fails in one of the three steps (answer, observe, attempt). The caller gets the answer once, nothing
// leaks, and the next calls are right.
#include <algorithm>
#include <set>

#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "stride.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::step_faults_test {
namespace {

using backends::FaultLength;

constexpr const char* k_program = "kernel add_scalar(memory x, value amount, value n)\n"
                                  "kernel copy(memory to, memory from, value n)\n";
constexpr std::int32_t k_count = 32;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};

/// The steps of a first call. In `work` the callable itself runs for the answer, and its failures belong to the caller.
enum class Step : std::uint8_t { prepare, work, answered, look, attempt };

struct CallSite {
    Step step;
    std::string entry;
    std::uint64_t nth = 0; ///< counts the calls of this entry point since the first call began
};

class StepFaults : public testing::Test {
protected:
    StepFaults() { backends::register_backend(fake); }

    struct Calls {
        std::vector<Outcome> outcomes;
        std::vector<std::vector<std::int32_t>> values, counters;
        std::string reason;
        std::uint64_t refusals = 0;
        std::int64_t extra_memory = 0; ///< allocations at the start of the answer, minus those before the first call
        std::vector<CallSite> sites;   ///< the driver calls that the first call makes
    };
    /// Makes three calls in a new cache. The fault is active during the first one.
    Calls call(const std::optional<backends::Fault>& fault)
    {
        std::filesystem::remove_all(dir.path() / "cache");
        const CacheOptions options = cache_options("toy", dir.path() / "cache");
        const Device device{"fake:0"};
        const Program program = device.program("small", k_program);
        const auto filled = [&](std::int32_t value) {
            return device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, value));
        };
        const Buffer x = filled(5), y = filled(-1), counter = filled(0), weight = filled(3);
        Cache cache{options};
        Spec spec = x_to_y(i32, k_count);
        spec.states = {state("counter", counter), weights("weight", weight)};
        spec.scalars = {scalar("amount", i32, 0, 5)};
        spec.code = {program};
        std::optional<std::pair<std::size_t, std::size_t>> work;
        const std::int64_t before = fake->live().allocations;
        Calls result;
        Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
            const std::size_t begin = fake->calls().size();
            if (!work) result.extra_memory = fake->live().allocations - before;
            enqueue(r, program);
            if (!work) work.emplace(begin, fake->calls().size());
        });
        fake->clear_calls();
        if (fault) fake->inject(*fault);
        for (int i = 0; i < 3; ++i) {
            result.outcomes.push_back(f({{"x", x}, {"y", y}, {"amount", 2}}));
            if (i == 0) {
                result.reason = f.report().reason;
                result.sites = sites(work.value_or(std::pair<std::size_t, std::size_t>{}));
                fake->clear_faults();
            }
            device.synchronize();
            result.values.push_back(y.read<std::int32_t>());
            result.counters.push_back(counter.read<std::int32_t>());
        }
        result.refusals = cache.statistics().of(ArtifactKind::entries).refused;
        return result;
    }
    /// Enqueues y = x + amount, through scratch and a second stream, and counter += 1.
    static void enqueue(Recorder& r, const Program& program)
    {
        const Address scratch = r.alloc("scratch", k_count * 4);
        r.stream().zero(scratch, k_count * 4);
        r.stream().copy(scratch, r["x"], k_count * 4);
        r.stream().launch(program, "add_scalar", k_launch, scratch, r.scalar<std::int32_t>("amount"), k_count);
        Stream& side = r.fork();
        side.launch(program, "copy", k_launch, r["y"], scratch, k_count);
        r.join(side);
        r.stream().launch(program, "add_scalar", k_launch, r["counter"], std::int32_t{1}, k_count);
    }
    /// All driver calls in the log, each with its step.
    [[nodiscard]] std::vector<CallSite> sites(const std::pair<std::size_t, std::size_t>& work) const
    {
        const auto log = fake->calls();
        const auto index_of = [&](std::string_view entry) {
            return static_cast<std::size_t>(std::ranges::find(log, entry) - log.begin());
        };
        const std::size_t looked = index_of("begin_capture"), tried = index_of("instantiate");
        std::map<std::string, std::uint64_t> seen;
        std::vector<CallSite> result;
        for (std::size_t i = 0; i < log.size(); ++i) {
            const Step step = i < work.first    ? Step::prepare
                              : i < work.second ? Step::work
                              : i < looked      ? Step::answered
                              : i < tried       ? Step::look
                                                : Step::attempt;
            result.push_back({step, log[i], ++seen[log[i]]});
        }
        return result;
    }
    static void expect_answered(const Calls& calls, const std::string& what)
    {
        for (std::int32_t i = 0; i < 3; ++i) {
            const auto at = static_cast<std::size_t>(i);
            ASSERT_EQ(calls.values[at], std::vector<std::int32_t>(k_count, 7)) << what << ", call " << i + 1;
            ASSERT_EQ(calls.counters[at], std::vector<std::int32_t>(k_count, i + 1)) << what << ", call " << i + 1;
        }
        if (calls.outcomes.front() == Outcome::refused) {
            EXPECT_FALSE(calls.reason.empty()) << what;
            EXPECT_EQ(calls.refusals, 1U) << what;
        }
    }
    /// Makes each driver call in these steps fail once, with this length of the fault. Returns how many calls were not
    /// recorded.
    std::size_t fail_each(std::set<Step> steps, FaultLength length)
    {
        const Calls undisturbed = call(std::nullopt);
        EXPECT_EQ(undisturbed.outcomes.front(), Outcome::recorded) << undisturbed.reason;
        expect_answered(undisturbed, "no fault");
        const backends::LiveObjects before = fake->live();
        std::size_t unrecorded = 0, injected = 0;
        for (const CallSite& site : undisturbed.sites) {
            if (!is_taken(site.nth)) continue;
            if (!steps.contains(site.step)) continue;
            const std::string what = fmt::format("{} call {} fails {}", site.entry, site.nth,
                                                 length == FaultLength::once ? "once" : "until the call returns");
            const Calls calls =
                call(backends::Fault{site.entry, site.nth, length, {ErrorCode::driver_failed, "injected fault"}});
            expect_answered(calls, what);
            EXPECT_EQ(fake->live(), before) << what << ": leaks";
            unrecorded += calls.outcomes.front() == Outcome::recorded ? 0 : 1;
            ++injected;
            if (testing::Test::HasFatalFailure()) return unrecorded;
        }
        EXPECT_GE(injected, 3U);
        return unrecorded;
    }

    TempDir dir;
    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
};

TEST_F(StepFaults, WhileItIsPreparedTheCallerHasTheAnswer)
{
    EXPECT_GE(fail_each({Step::prepare}, FaultLength::once), 3U);
}

TEST_F(StepFaults, WhenTheAnswerWasGivenTheCallerHasIt) { fail_each({Step::answered}, FaultLength::once); }

TEST_F(StepFaults, WhileItLooksTheCallerHasTheAnswer)
{
    EXPECT_GE(fail_each({Step::look}, FaultLength::once), 10U);
    EXPECT_GE(fail_each({Step::look}, FaultLength::for_ever), 10U);
}

TEST_F(StepFaults, WhileItTriesTheCallerHasTheAnswer)
{
    EXPECT_GE(fail_each({Step::attempt}, FaultLength::once), 10U);
    EXPECT_GE(fail_each({Step::attempt}, FaultLength::for_ever), 10U);
}

TEST_F(StepFaults, NoMemoryInAnyStepCostsTheRecordingAlone)
{
    const Calls undisturbed = call(std::nullopt);
    for (const CallSite& site : undisturbed.sites) {
        if (site.step == Step::work || (site.entry != "allocate" && site.entry != "reserve_shadow")) continue;
        const Calls calls =
            call(backends::Fault{site.entry, site.nth, FaultLength::once, {ErrorCode::out_of_memory, "no memory"}});
        expect_answered(calls, fmt::format("no memory at {} {}", site.entry, site.nth));
        EXPECT_EQ(calls.outcomes.front(), Outcome::refused);
        if (site.step == Step::prepare) {
            EXPECT_EQ(calls.extra_memory, 0) << "what was prepared is freed for the answer: " << site.nth;
        }
    }
    EXPECT_GT(undisturbed.extra_memory, 0);
}

} // namespace
} // namespace warmgraph::test::step_faults_test
