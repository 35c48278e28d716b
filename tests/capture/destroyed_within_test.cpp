// A callable destroys its own function. The call ends normally, and the callable does not run again.
#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::destroyed_within_test {
namespace {

constexpr std::int32_t k_values = 32;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_values, 1, 1}};

class DestroyedWithin : public testing::Test {
protected:
    DestroyedWithin()
    {
        backends::register_backend(backends::make_fake_backend());
        device.emplace("fake:0");
        program.emplace(device->program("small", "kernel add_scalar(memory x, value amount, value n)\n"));
        x.emplace(filled(5)), y.emplace(filled(0));
        options = cache_options("toy", dir.path() / "cache");
    }
    [[nodiscard]] Buffer filled(std::int32_t value) const
    {
        return device->upload<std::int32_t>(std::vector<std::int32_t>(k_values, value));
    }
    [[nodiscard]] Spec spec() const { return x_to_y(i32, k_values, {*program}); }
    /// y = x + 1
    void add_one(Recorder& r, const char* from = "x", const char* to = "y") const
    {
        r.stream().copy(r[to], r[from], k_values * sizeof(std::int32_t));
        r.stream().launch(*program, "add_scalar", k_launch, r[to], std::int32_t{1}, k_values);
    }
    void expect_sum() const
    {
        device->synchronize();
        EXPECT_EQ(y->read<std::int32_t>(), std::vector<std::int32_t>(k_values, 6));
    }

    TempDir dir;
    CacheOptions options;
    std::optional<Device> device;
    std::optional<Program> program;
    std::optional<Buffer> x, y;
};

TEST_F(DestroyedWithin, AFunctionAnswersAndIsNotRecordedWhicheverRunDestroysIt)
{
    std::optional<Cache> cache{std::in_place, options};
    for (int nth = 1; nth <= 3; ++nth) {
        SCOPED_TRACE(nth);
        int runs = 0;
        std::optional<Function> f;
        f.emplace(cache->wrap("f", *device, spec(), [&](Recorder& r) {
            if (++runs == nth) f.reset();
            add_one(r);
        }));
        EXPECT_EQ((*f)({{"x", *x}, {"y", *y}}), Outcome::refused);
        EXPECT_FALSE(f);
        EXPECT_EQ(runs, nth) << "it is not run again";
        expect_sum();
        Function same = cache->wrap("f", *device, spec(), [this](Recorder& r) { add_one(r); });
        EXPECT_EQ(same({{"x", *x}, {"y", *y}}), Outcome::recorded) << "the name is free, and nothing was published";
        expect_sum();
        cache->clear();
    }
}

TEST_F(DestroyedWithin, AFunctionTakesItsCacheAndItsStreamAlong)
{
    for (const Policy policy : {Policy::read_write, Policy::off}) {
        options.policy = policy;
        std::optional<Cache> cache{std::in_place, options};
        std::optional<Stream> stream{device->stream()};
        std::optional<Function> f;
        f.emplace(cache->wrap("f", *device, spec(), [&](Recorder& r) {
            f.reset();
            cache.reset();
            stream.reset();
            add_one(r);
        }));
        const Outcome outcome = (*f)(*stream, {{"x", *x}, {"y", *y}});
        EXPECT_EQ(outcome, policy == Policy::off ? Outcome::eager : Outcome::refused);
        Stream after = device->stream(); // also waits for the work in the destroyed stream
        after.synchronize();
        expect_sum();
        y.emplace(filled(0));
    }
}

TEST_F(DestroyedWithin, AFunctionWhoseProfileIsRecordedIsRecordedNoFurther)
{
    {
        Cache cache{options};
        Function f = cache.wrap("f", *device, spec(), [this](Recorder& r) { add_one(r); });
        static_cast<void>(f({{"x", *x}, {"y", *y}}));
        device->synchronize();
        cache.clear();
    }
    Cache cache{options};
    std::optional<Function> f;
    f.emplace(cache.wrap("f", *device, spec(), [&](Recorder& r) {
        f.reset();
        add_one(r);
    }));
    const ProfileRecording recorded =
        cache.record_profile(*f, [&](const ProfiledShape&) { return std::vector<Arg>{{"x", *x}, {"y", *y}}; }, 0);
    EXPECT_EQ(recorded.recorded, 0U);
    EXPECT_EQ(recorded.problems.size(), recorded.shapes);
    EXPECT_FALSE(f && recorded.shapes != 0);
}

TEST_F(DestroyedWithin, APairAnswersAndIsNotRecorded)
{
    Cache cache{options};
    const Buffer dy = filled(3), dx = filled(0);
    PairSpec declared;
    declared.forward = spec();
    declared.backward.inputs = {input("dy", i32, {k_values})};
    declared.backward.outputs = {output("dx", i32, {k_values})};
    declared.saved = {{"h", i32, {k_values}}};
    for (const bool in_forward : {true, false}) {
        std::optional<Pair> pair;
        int forward_runs = 0, backward_runs = 0;
        pair.emplace(cache.wrap_pair(
            "step", *device, declared,
            [&](Recorder& r) {
                ++forward_runs;
                if (in_forward) pair.reset();
                add_one(r, "x", "h");
                add_one(r);
            },
            [&](Recorder& r) {
                ++backward_runs;
                pair.reset();
                add_one(r, "h", "dx");
            }));
        const ForwardCall call = pair->forward({{"x", *x}, {"y", *y}});
        expect_sum();
        if (in_forward) {
            EXPECT_EQ(call.outcome, Outcome::refused);
            EXPECT_EQ(forward_runs, 1);
            continue;
        }
        EXPECT_EQ(pair->backward(call, {{"dy", dy}, {"dx", dx}}), Outcome::refused);
        EXPECT_EQ(backward_runs, 1);
        device->synchronize();
        EXPECT_EQ(dx.read<std::int32_t>(), std::vector<std::int32_t>(k_values, 7));
    }
}

} // namespace
} // namespace warmgraph::test::destroyed_within_test
