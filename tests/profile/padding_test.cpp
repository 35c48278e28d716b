// Tests calls that are padded to buckets, on a device: their results, the memory that they write, and their recordings.
#include "profile_fixture.hpp"

namespace warmgraph::test::padding_test {
namespace {

class Padded : public ProfileTest {
protected:
    /// The function y[0] = the sum of all elements of x, including the padding.
    [[nodiscard]] Function summing(Cache& cache, DType type, const std::string& c_type, std::vector<std::int64_t> sizes,
                                   std::vector<Buckets> buckets)
    {
        m_sum =
            device.program("sum-" + c_type, "__kernel void sum(__global const " + c_type +
                                                "* x, __global float* y, int n)\n"
                                                "{ float s = 0; for (int i = 0; i < n; ++i) s += x[i]; y[0] = s; }");
        Spec spec;
        spec.inputs = {input("x", type, std::move(sizes))};
        spec.outputs = {output("y", f32, {1})};
        spec.code = {*m_sum};
        spec.buckets = std::move(buckets);
        return cache.wrap("sum", device, spec, [this](Recorder& r) {
            m_ran = r.sizes("x");
            int count = 1;
            for (const std::int64_t size : m_ran) count *= static_cast<int>(size);
            r.stream().launch(*m_sum, "sum", {.grid = {1, 1, 1}, .block = {1, 1, 1}}, r["x"], r["y"], count);
        });
    }
    std::optional<Program> m_sum;
};

TEST_F(Padded, ToGivenBucketsRecordsOneVariantEach)
{
    Cache cache{options()};
    Function f = wrap(cache, spec_of({given({16, 64})}));
    for (const std::int64_t count : {3, 16, 17, 64, 1, 40}) {
        const CallResult called = call(f, count);
        EXPECT_TRUE(called.is_right) << count;
        EXPECT_TRUE(called.outcome == Outcome::recorded || called.outcome == Outcome::replayed) << count;
    }
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 2U);
    EXPECT_EQ(entries().size(), 2U);
    EXPECT_EQ(f.buckets(), (std::vector<std::vector<std::int64_t>>{{16, 64}}));
}

TEST_F(Padded, ALaterProcessReplaysEverySize)
{
    {
        Cache cache{options()};
        Function f = wrap(cache, spec_of({given({16, 64})}));
        static_cast<void>(call(f, 3));
        static_cast<void>(call(f, 33));
    }
    Cache cache{options(Policy::require_hit)};
    Function f = wrap(cache, spec_of({given({16, 64})}));
    for (const std::int64_t count : {1, 2, 15, 16, 17, 63, 64}) {
        const CallResult called = call(f, count);
        EXPECT_EQ(called.outcome, Outcome::replayed) << count;
        EXPECT_TRUE(called.is_right) << count;
    }
}

TEST_F(Padded, WhatNoBucketHoldsRunsAsItIs)
{
    Cache cache{options()};
    Function f = wrap(cache, spec_of({given({16})}));
    const CallResult called = call(f, 40);
    EXPECT_EQ(called.outcome, Outcome::eager);
    EXPECT_TRUE(called.is_right);
    EXPECT_THAT(f.report().reason, HasSubstr("x[0] is 40, the largest bucket is 16"));
    EXPECT_EQ(entries().size(), 0U);
    EXPECT_EQ(m_ran, std::vector<std::int64_t>{40});
}

TEST_F(Padded, AMultipleHoldsForEverySize)
{
    Cache cache{options()};
    Buckets fixed = bucket_of(BucketRule::fixed), few = given({32});
    fixed.multiple_of = few.multiple_of = 16;
    Function f = wrap(cache, spec_of({fixed})), g = wrap(cache, spec_of({few}), "g");
    EXPECT_TRUE(call(f, 17).is_right);
    EXPECT_EQ(m_ran, std::vector<std::int64_t>{32});
    EXPECT_TRUE(call(g, 33).is_right);
    EXPECT_EQ(m_ran, std::vector<std::int64_t>{48}) << "in no bucket, and a multiple all the same";
}

TEST_F(Padded, WithTheDeclaredValue)
{
    Cache cache{options()};
    Buckets buckets;
    buckets.dimensions = {{"x", 0, 100}};
    buckets.rule = BucketRule::given;
    buckets.sizes = {8};
    Function f = summing(cache, f32, "float", {8}, {buckets});
    const Buffer x = floats(1, 3), y = floats(0, 1); // 1 + 2 + 3
    f({{"x", Tensor{x, f32, {3}, {}}}, {"y", y}});
    EXPECT_EQ(read(y)[0], 6 + 5 * 100);
    f({{"x", Tensor{x, f32, {2}, {}}}, {"y", y}}); // the padding must overwrite what the last call left there
    EXPECT_EQ(read(y)[0], 3 + 6 * 100);
}

TEST_F(Padded, WithAValueOfEachType)
{
    const std::vector<std::tuple<DType, std::string, double>> types{
        {i8, "char", -3},      {u8, "uchar", 200},    {i16, "short", -300}, {u16, "ushort", 40'000},
        {i32, "int", -70'000}, {u32, "uint", 70'000}, {i64, "long", -5},    {u64, "ulong", 5},
        {f32, "float", 0.5},   {f64, "double", -0.25}};
    for (const auto& [type, c_type, value] : types) {
        Cache cache{options()};
        Buckets buckets;
        buckets.dimensions = {{"x", 0, value}};
        buckets.rule = BucketRule::given;
        buckets.sizes = {4};
        Function f = summing(cache, type, c_type, {4}, {buckets});
        const Buffer x = device.upload<std::byte>(std::vector<std::byte>(size_of(type))), y = floats(7, 1); // a zero
        f({{"x", Tensor{x, type, {1}, {}}}, {"y", y}});
        EXPECT_EQ(read(y)[0], static_cast<float>(3 * value)) << c_type;
    }
}

TEST_F(Padded, InAnInnerDimensionAndInTwo)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    spec.inputs = {input("x", f32, {2, 4, 3})};
    spec.outputs = {output("y", f32, {2, 4, 3})};
    Buckets outer, inner;
    outer.dimensions = {{"x", 0}, {"y", 0}};
    inner.dimensions = {{"x", 1}, {"y", 1}};
    outer.rule = inner.rule = BucketRule::given;
    outer.sizes = {4};
    inner.sizes = {8};
    spec.buckets = {outer, inner};
    Function f = wrap(cache, spec);
    for (const auto& sizes : {std::vector<std::int64_t>{2, 5, 3}, {4, 8, 3}, {3, 1, 3}, {1, 8, 3}}) {
        const std::int64_t count = sizes[0] * sizes[1] * sizes[2];
        const Buffer x = floats(1, count), y = floats(-5, count);
        f({{"x", Tensor{x, f32, sizes, {}}}, {"y", Tensor{y, f32, sizes, {}}}});
        EXPECT_EQ(m_ran, (std::vector<std::int64_t>{4, 8, 3}));
        EXPECT_EQ(read(y), read(floats(2, count)));
    }
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 1U);
}

TEST_F(Padded, WhatTheFunctionDoesNotWriteStays)
{
    Cache cache{options()};
    Spec spec = spec_of({given({16})});
    Function f = cache.wrap("put", device, spec, [this](Recorder& r) {
        static_cast<void>(r["x"]);
        r.stream().launch(program, "put", {.grid = {1, 1, 1}, .block = {1, 1, 1}}, r["y"], 2, 77.0F);
    });
    for (int i = 0; i < 2; ++i) {
        const Buffer x = floats(0, 5), y = floats(10, 5);
        f({{"x", Tensor{x, f32, {5}, {}}}, {"y", Tensor{y, f32, {5}, {}}}});
        EXPECT_EQ(read(y), (std::vector<float>{10, 11, 77, 13, 14}));
    }
}

TEST_F(Padded, NoElementsAreASizeToo)
{
    Cache cache{options()};
    Function f = wrap(cache, spec_of({given({16})}));
    EXPECT_TRUE(call(f, 0).is_right);
    EXPECT_EQ(m_ran, std::vector<std::int64_t>{16});
}

TEST_F(Padded, CallsInSeveralStreamsComeAfterEachOther)
{
    Cache cache{options()};
    Function f = wrap(cache, spec_of({given({64})}));
    EXPECT_TRUE(call(f, 60).is_right);
    Stream streams[2] = {device.stream(), device.stream()};
    std::vector<Buffer> xs, ys;
    for (int i = 0; i < 20; ++i) {
        xs.push_back(floats(static_cast<float>(i), 50));
        ys.push_back(floats(0, 50));
    }
    for (std::size_t i = 0; i < 20; ++i)
        f(streams[i % 2], {{"x", Tensor{xs[i], f32, {50}, {}}}, {"y", Tensor{ys[i], f32, {50}, {}}}});
    for (Stream& stream : streams) stream.synchronize(); // Device::synchronize waits for the default stream alone
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(read(ys[i]), read(floats(static_cast<float>(i) + 1, 50)));
}

TEST_F(Padded, TensorsThatNoCopyCanStandForAreRefused)
{
    Cache cache{options()};
    Function f = wrap(cache, spec_of({given({16})}));
    const Buffer x = floats(0), y = floats(0);
    const auto message = [&](std::initializer_list<Arg> args) {
        const auto thrown = thrown_by([&] { f(args); });
        if (!thrown) return std::string("nothing was thrown");
        EXPECT_EQ(thrown->code(), ErrorCode::invalid_argument);
        return std::string(thrown->what());
    };
    EXPECT_THAT(message({{"x", Tensor{x, f32, {5}, {2}}}, {"y", Tensor{y, f32, {5}, {}}}}),
                HasSubstr("not contiguous"));
    EXPECT_THAT(message({{"x", Tensor{x, i32, {5}, {}}}, {"y", Tensor{y, f32, {5}, {}}}}), HasSubstr("declared type"));
    EXPECT_THAT(message({{"x", Tensor{x, f32, {5}, {}}}, {"y", Tensor{y, f32, {6}, {}}}}),
                HasSubstr("expected one size"));
    EXPECT_THAT(message({{"x", Tensor{x, f32, {5}, {}}}, {"y", Tensor{x, f32, {5}, {}}}}), HasSubstr("overlaps"));
    EXPECT_THAT(message({{"x", Tensor{x, f32, {}, {}}}, {"y", Tensor{y, f32, {5}, {}}}}), HasSubstr("dimension 0"));
    EXPECT_TRUE(call(f, 5).is_right) << "the rest works";
}

TEST_F(Padded, DeclarationsThatMakeNoSenseAreRefused)
{
    Cache cache{options()};
    const auto message = [&](const Buckets& buckets, bool twice = false) {
        const auto thrown = thrown_by(
            [&] { Function f = wrap(cache, spec_of(twice ? std::vector{buckets, buckets} : std::vector{buckets})); });
        return thrown && thrown->code() == ErrorCode::invalid_argument ? std::string(thrown->what())
                                                                       : std::string("nothing was thrown");
    };
    const auto changed = [&](const auto& change) {
        Buckets buckets = given({16, 32});
        change(buckets);
        return message(buckets);
    };
    EXPECT_THAT(changed([](Buckets& b) { b.dimensions[0].argument = "z"; }), HasSubstr("'z'"));
    EXPECT_THAT(changed([](Buckets& b) { b.dimensions[0].dimension = 1; }), HasSubstr("dimension 1"));
    EXPECT_THAT(changed([](Buckets& b) { b.dimensions[1] = b.dimensions[0]; }), HasSubstr("twice"));
    EXPECT_THAT(changed([](Buckets& b) { b.dimensions.clear(); }), HasSubstr("no dimension"));
    EXPECT_THAT(changed([](Buckets& b) { b.sizes.clear(); }), HasSubstr("0 bucket sizes"));
    EXPECT_THAT(changed([](Buckets& b) { b.sizes = {32, 16}; }), HasSubstr("ascend"));
    EXPECT_THAT(changed([](Buckets& b) { b.sizes = {-16}; }), HasSubstr("-16"));
    EXPECT_THAT(changed([](Buckets& b) { b.multiple_of = 0; }), HasSubstr("multiples of 0"));
    EXPECT_THAT(changed([](Buckets& b) { b.multiple_of = 32; }), HasSubstr("not a multiple of 32"));
    EXPECT_THAT(changed([](Buckets& b) { b.rule = BucketRule::learnt; }), HasSubstr("go with the rule `given`"));
    EXPECT_THAT(message(learnt(0)), HasSubstr("buckets is 0"));
    EXPECT_THAT(message(learnt(257)), HasSubstr("buckets is 257"));
    EXPECT_THAT(message(given({16}), true), HasSubstr("twice"));
    Spec spec = spec_of({});
    spec.inputs[0].dtype = i32;
    spec.buckets = {bucket_of(BucketRule::fixed, 0.5)};
    EXPECT_THAT(message_of(thrown_by([&] { Function f = wrap(cache, spec); })), HasSubstr("i32 cannot hold"));
    EXPECT_TRUE(call(*std::make_unique<Function>(wrap(cache, spec_of({given({16})}))), 3).is_right)
        << "the name is free after a refusal";
}

} // namespace
} // namespace warmgraph::test::padding_test
