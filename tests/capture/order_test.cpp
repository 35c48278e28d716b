// The order of the steps in a first call: the answer, captures and their classification, trials. The fake device logs
// every call.
#include <algorithm>
#include <thread>

#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::order_test {
namespace {

constexpr const char* k_program = "kernel add_scalar(memory x, value amount, value n)\n"
                                  "kernel copy(memory to, memory from, value n)\n"
                                  "kernel noise(memory x, value n)\n";
constexpr std::int32_t k_count = 32;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};

/// The events of one call in their order.
struct Log {
    static constexpr std::size_t k_none = ~std::size_t{0};
    std::vector<std::string> calls;     ///< names of the entry points that were called
    std::vector<std::size_t> runs;      ///< for each run of the callable: how many driver calls came before it
    std::vector<std::size_t> real_runs; ///< as `runs`, but only for the runs that were not captured

    [[nodiscard]] std::size_t first(std::string_view entry) const
    {
        const auto found = std::ranges::find(calls, entry);
        return found == calls.end() ? k_none : static_cast<std::size_t>(found - calls.begin());
    }
    [[nodiscard]] std::size_t last(std::string_view entry, std::size_t before = k_none) const
    {
        for (std::size_t i = std::min(before, calls.size()); i-- > 0;)
            if (calls[i] == entry) return i;
        return k_none;
    }
    [[nodiscard]] std::size_t count(std::string_view entry, std::size_t from, std::size_t to) const
    {
        std::size_t result = 0;
        for (std::size_t i = from; i < std::min(to, calls.size()); ++i) result += calls[i] == entry ? 1 : 0;
        return result;
    }
    /// How often `entry` was called outside of captures.
    [[nodiscard]] std::size_t real_count(std::string_view entry) const
    {
        std::size_t result = 0;
        bool is_capturing = false;
        for (const auto& call : calls) {
            if (call == "begin_capture") is_capturing = true;
            if (call == "end_capture") is_capturing = false;
            result += !is_capturing && call == entry ? 1 : 0;
        }
        return result;
    }
};

class Order : public testing::Test {
protected:
    Order()
    {
        backends::register_backend(fake);
        device.emplace("fake:0");
        program.emplace(device->program("order", k_program));
        x.emplace(filled(5));
        y.emplace(filled(-1));
        counter.emplace(filled(0));
    }
    [[nodiscard]] Buffer filled(std::int32_t value) const
    {
        return device->upload<std::int32_t>(std::vector<std::int32_t>(k_count, value));
    }
    [[nodiscard]] static std::vector<std::int32_t> all(std::int32_t value)
    {
        return std::vector<std::int32_t>(k_count, value);
    }
    [[nodiscard]] CacheOptions options() const { return cache_options("order", dir.path() / "cache"); }
    [[nodiscard]] Spec spec() const
    {
        Spec result = x_to_y(i32, k_count);
        result.states = {state("counter", *counter)};
        result.code = {*program};
        return result;
    }
    void launch(Recorder& r, std::string_view kernel, const std::vector<KernelArg>& args) const
    {
        r.stream().launch_list(*program, kernel, k_launch, args);
    }
    /// The work y = x; counter += 1. The counter shows a second run.
    void work(Recorder& r) const
    {
        launch(r, "add_scalar", {r["counter"], std::int32_t{1}, k_count});
        launch(r, "copy", {r["y"], r["x"], k_count});
    }
    [[nodiscard]] bool is_capturing() const
    {
        return fake->call_count("begin_capture") != fake->call_count("end_capture");
    }
    /// Wraps `body` and logs its runs.
    [[nodiscard]] Function wrap(Cache& cache, const Spec& declared, const Callable& body)
    {
        return cache.wrap("f", *device, declared, [this, body](Recorder& r) {
            log.runs.push_back(fake->calls().size());
            if (!is_capturing()) log.real_runs.push_back(fake->calls().size());
            body(r);
        });
    }
    Outcome call(Function& f, std::vector<Arg> more = {})
    {
        log = {};
        fake->clear_calls();
        more.emplace_back("x", *x);
        more.emplace_back("y", *y);
        const Outcome outcome = f.call(more);
        log.calls = fake->calls();
        device->synchronize();
        return outcome;
    }
    /// Expects that before the first capture only the answer runs, once.
    void expect_answered_first() const
    {
        ASSERT_FALSE(log.runs.empty());
        EXPECT_EQ(log.real_runs.size(), 1U) << "it ran as it is once";
        EXPECT_EQ(log.real_runs.front(), log.runs.front()) << "and before any capture";
        const std::size_t looked = log.first("begin_capture");
        EXPECT_LT(log.runs.front(), looked);
        EXPECT_EQ(log.count("exec.launch", 0, looked), 0U);
        EXPECT_EQ(log.count("instantiate", 0, looked), 0U);
    }

    TempDir dir;
    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
    std::optional<Device> device;
    std::optional<Program> program;
    std::optional<Buffer> x, y, counter;
    Log log;
};

TEST_F(Order, TheAnswerRunsThenCapturesAreClassifiedThenTrialsRun)
{
    Cache cache{options()};
    Function f = wrap(cache, spec(), [this](Recorder& r) { work(r); });
    ASSERT_EQ(call(f), Outcome::recorded) << f.report().reason;
    expect_answered_first();
    const std::size_t tried = log.first("instantiate"), classified = log.last("end_capture");
    EXPECT_LT(classified, tried) << "all captures were made before anything was instantiated";
    EXPECT_LT(tried, log.first("exec.launch"));
    EXPECT_EQ(log.real_count("launch"), 2U) << "the answer's two kernels, and none after it";
    EXPECT_EQ(log.runs.size(), 1 + log.count("begin_capture", 0, log.calls.size())) << "the answer and the captures";
    EXPECT_EQ(log.count("exec.launch", tried, log.calls.size()), 5U)
        << "own runs: two from the outputs as they were, one from others; the restored graph: one from each";
    EXPECT_EQ(counter->read<std::int32_t>(), all(1));
    EXPECT_EQ(y->read<std::int32_t>(), all(5));

    EXPECT_EQ(call(f), Outcome::replayed);
    EXPECT_TRUE(log.runs.empty());
    EXPECT_EQ(log.real_count("exec.launch"), 1U);
    EXPECT_EQ(counter->read<std::int32_t>(), all(2));
}

TEST_F(Order, NothingOfTheCallersChangesBetweenTheAnswerAndTheEnd)
{
    std::vector<std::vector<std::int32_t>> seen;
    Cache cache{options()};
    Function f = cache.wrap("f", *device, spec(), [&](Recorder& r) {
        // The read is in another thread, because a capture only forbids reads in its own thread.
        if (is_capturing()) std::thread{[&] { seen.push_back(counter->read<std::int32_t>()); }}.join();
        work(r);
    });
    ASSERT_EQ(call(f), Outcome::recorded) << f.report().reason;
    EXPECT_GE(seen.size(), 3U);
    EXPECT_THAT(seen, Each(all(1)));
}

TEST_F(Order, ScalarsAreProbedBeforeAnythingIsTried)
{
    Cache cache{options()};
    Spec declared = spec();
    declared.scalars = {scalar("amount", i32, 0, 99)};
    Function f = wrap(cache, declared, [this](Recorder& r) {
        work(r);
        launch(r, "add_scalar", {r["y"], r.scalar<std::int32_t>("amount"), k_count});
    });
    ASSERT_EQ(call(f, {{"amount", 7}}), Outcome::recorded) << f.report().reason;
    expect_answered_first();
    const std::size_t tried = log.first("instantiate");
    EXPECT_GE(log.count("begin_capture", 0, tried), 3U + 99U) << "every other value of the range";
    EXPECT_EQ(log.count("begin_capture", tried, log.calls.size()), 1U) << "one that is run at another value";
    EXPECT_EQ(log.count("exec.launch", 0, tried), 0U);
    EXPECT_EQ(counter->read<std::int32_t>(), all(1));
    EXPECT_EQ(y->read<std::int32_t>(), all(12));
}

TEST_F(Order, WhatClassificationRefusesHasRunOnceAndNothingElseRan)
{
    std::int32_t runs = 0;
    const Buffer hidden = filled(0);
    const std::vector<std::pair<Callable, std::string>> refused{
        {[&](Recorder& r) {
             work(r);
             launch(r, "add_scalar", {r["y"], ++runs, k_count});
         },
         "its second run enqueued something else"},
        {[&](Recorder& r) {
             work(r);
             launch(r, "add_scalar", {hidden, std::int32_t{1}, k_count});
         },
         "lies in no declared region"},
        {[&](Recorder& r) {
             work(r);
             r.stream().synchronize();
         },
         "Stream::synchronize"},
    };
    std::int32_t calls = 0;
    for (const auto& [body, why] : refused) {
        Cache cache{options()};
        Function f = wrap(cache, spec(), body);
        EXPECT_EQ(call(f), Outcome::refused) << why;
        EXPECT_THAT(f.report().reason, HasSubstr(why));
        EXPECT_EQ(counter->read<std::int32_t>(), all(++calls)) << why;
        expect_answered_first();
        EXPECT_EQ(log.count("instantiate", 0, log.calls.size()), 0U) << why;
        EXPECT_EQ(log.count("exec.launch", 0, log.calls.size()), 0U) << why;
        EXPECT_EQ(call(f), Outcome::refused);
        EXPECT_EQ(log.runs.size(), 1U) << "later calls run it once, and capture nothing";
        EXPECT_EQ(log.first("begin_capture"), Log::k_none);
        EXPECT_EQ(counter->read<std::int32_t>(), all(++calls)) << why;
    }
    EXPECT_EQ(hidden.read<std::int32_t>(), all(2)) << "once for each call";
}

TEST_F(Order, WhatTrialsRefuseHasRunOnceToo)
{
    bool is_initialised = false;
    const std::vector<std::pair<Callable, std::string>> refused{
        {[&](Recorder& r) {
             if (!is_initialised) launch(r, "add_scalar", {r["counter"], std::int32_t{10}, k_count});
             is_initialised = true;
             work(r);
         },
         "initialises or advances something that a capture does not contain"},
        {[&](Recorder& r) {
             work(r);
             launch(r, "noise", {r["y"], k_count});
         },
         "'y'"},
    };
    for (const auto& [body, why] : refused) {
        const std::int32_t before = counter->read<std::int32_t>().front();
        Cache cache{options()};
        Function f = wrap(cache, spec(), body);
        EXPECT_EQ(call(f), Outcome::refused) << why;
        EXPECT_THAT(f.report().reason, HasSubstr(why));
        expect_answered_first();
        EXPECT_LT(log.last("end_capture"), log.first("instantiate")) << why;
        EXPECT_GT(log.count("exec.launch", 0, log.calls.size()), 0U) << why;
        const std::int32_t first = before + (before == 0 ? 11 : 1);
        EXPECT_EQ(counter->read<std::int32_t>(), all(first)) << why;
        EXPECT_EQ(call(f), Outcome::refused);
        EXPECT_EQ(log.runs.size(), 1U);
        EXPECT_EQ(counter->read<std::int32_t>(), all(first + 1)) << why;
    }
}

TEST_F(Order, ARecordingOnDemandHasRunNothingButTheAnswerUntilItsMoment)
{
    CacheOptions on_demand = options();
    on_demand.record = RecordWhen::on_demand;
    Cache cache{on_demand};
    Function f = wrap(cache, spec(), [this](Recorder& r) { work(r); });
    for (int i = 1; i <= 3; ++i) {
        EXPECT_EQ(call(f), Outcome::eager);
        EXPECT_EQ(log.runs.size(), 1U);
        EXPECT_EQ(log.first("begin_capture"), Log::k_none);
        EXPECT_EQ(log.first("exec.launch"), Log::k_none);
    }
    log = {};
    fake->clear_calls();
    EXPECT_EQ(cache.record_pending(), 1U);
    log.calls = fake->calls();
    EXPECT_TRUE(log.real_runs.empty()) << "it is captured, never run";
    EXPECT_LT(log.last("end_capture"), log.first("instantiate"));
    EXPECT_EQ(counter->read<std::int32_t>(), all(3));
    EXPECT_EQ(call(f), Outcome::replayed);
    EXPECT_EQ(counter->read<std::int32_t>(), all(4));
}

} // namespace
} // namespace warmgraph::test::order_test
