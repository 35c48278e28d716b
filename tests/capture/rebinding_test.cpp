// Promise G2: replays are compared with the function itself over random shapes, addresses and alignments, with canaries
// around the memory.
#include <cstdlib>
#include <random>

#include "facade_fixture.hpp"

namespace warmgraph::test::rebinding_test {
namespace {

constexpr int k_cases = 300;
constexpr float k_canary = -12345.5F;

class Rebinding : public FacadeTest {
protected:
    static unsigned seed()
    {
        const char* text = std::getenv("WARMGRAPH_TEST_SEED");
        return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : std::random_device{}();
    }
    /// A buffer of canaries that has `count` values at an offset of `step` times 128 bytes.
    struct Placed {
        Buffer buffer;
        std::size_t first; // index of the first element
        std::int64_t count;
        [[nodiscard]] MemoryRef memory() const
        {
            return {buffer.memory().address + first * 4, static_cast<std::uint64_t>(count) * 4};
        }
    };
    Placed place(std::mt19937& random, std::int64_t count, bool fill)
    {
        const std::size_t first = 32 * (1 + random() % 4);
        std::vector<float> values(first + static_cast<std::size_t>(count) + 64, k_canary);
        std::uniform_real_distribution<float> any{-100, 100};
        for (std::size_t i = 0; fill && i < static_cast<std::size_t>(count); ++i) values[first + i] = any(random);
        return {device.upload<float>(values), first, count};
    }
    static std::vector<float> contents(const Placed& placed)
    {
        auto values = placed.buffer.read<float>();
        return {values.begin() + static_cast<std::ptrdiff_t>(placed.first),
                values.begin() + static_cast<std::ptrdiff_t>(placed.first) + placed.count};
    }
    static bool canaries_intact(const Placed& placed)
    {
        const auto values = placed.buffer.read<float>();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool outside = i < placed.first || i >= placed.first + static_cast<std::size_t>(placed.count);
            if (outside && values[i] != k_canary) return false;
        }
        return true;
    }
};

TEST_F(Rebinding, ThreeHundredRandomCallsEqualTheFunctionItself)
{
    const unsigned start = seed();
    RecordProperty("seed", std::to_string(start));
    std::cout << "WARMGRAPH_TEST_SEED=" << start << "\n";
    std::mt19937 random{start};
    Spec spec;
    spec.inputs = {input("a", f32, {16}), input("b", f32, {16})};
    spec.outputs = {output("y", f32, {16})};
    spec.scalars = {scalar("factor", f32, -8, 8), scalar("n", i32, -1000, 1000)};
    spec.code = {program};
    const auto body = [this](Recorder& r) {
        const auto count = static_cast<std::uint32_t>(r.sizes("a")[0]);
        const Launch launch{.grid = {count / 16, 1, 1}, .block = {16, 1, 1}};
        const Address sum = r.alloc("sum" + std::to_string(count), count * 4),
                      scaled = r.alloc("scaled" + std::to_string(count), count * 4);
        r.stream().launch(program, "add", launch, r["a"], r["b"], sum);
        r.stream().launch(program, "scale", launch, sum, scaled, r.scalar<float>("factor"));
        r.stream().launch(program, "add_int", launch, scaled, r["y"], r.scalar<std::int32_t>("n") + 2);
    };
    Cache cache{options()};
    CacheOptions eager_options = options(Policy::off);
    Cache eager{eager_options};
    Function cached = cache.wrap("f", device, spec, body), native = eager.wrap("f", device, spec, body);

    for (int i = 0; i < k_cases; ++i) {
        const std::int64_t count = 16 * (1 + static_cast<std::int64_t>(random() % 4));
        const Placed a = place(random, count, true), b = place(random, count, true);
        const Placed y = place(random, count, false), expected = place(random, count, false);
        const float factor = std::uniform_real_distribution<float>{-8, 8}(random);
        const int n = static_cast<int>(random() % 2001) - 1000;
        const auto call = [&](Function& f, const Placed& out) {
            return f({{"a", Tensor{a.memory(), f32, {count}, {}}},
                      {"b", Tensor{b.memory(), f32, {count}, {}}},
                      {"y", Tensor{out.memory(), f32, {count}, {}}},
                      {"factor", factor},
                      {"n", n}});
        };
        const Outcome outcome = call(cached, y);
        EXPECT_TRUE(outcome == Outcome::recorded || outcome == Outcome::replayed) << cached.report().reason;
        call(native, expected);
        device.synchronize();
        ASSERT_EQ(contents(y), contents(expected)) << "case " << i << ", seed " << start;
        for (const Placed* placed : {&a, &b, &y})
            ASSERT_TRUE(canaries_intact(*placed)) << "case " << i << ", seed " << start;
    }
    EXPECT_LE(entries().size(), 64U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).refused, 0U);
}

} // namespace
} // namespace warmgraph::test::rebinding_test
