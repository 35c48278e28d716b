// Uses the same cache folder with another machine, driver or device: a fake backend with other properties.
#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::other_machine_test {
namespace {

constexpr std::int32_t k_count = 32;

class OtherMachine : public testing::Test {
protected:
    [[nodiscard]] CacheOptions options(bool accept_newer_driver = false) const
    {
        CacheOptions result = cache_options("toy", dir.path() / "cache");
        result.accept_newer_driver = accept_newer_driver;
        return result;
    }
    /// The report of the first call on a machine with these properties. x is 5, and the function adds 37.
    Report call(const backends::FakeOptions& machine, bool accept_newer_driver = false)
    {
        backends::register_backend(backends::make_fake_backend(machine));
        const Device device{"fake:0"};
        const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
        Cache cache{options(accept_newer_driver)};
        Function f = wrap(cache, device, program);
        const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 5)),
                     y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}});
        device.synchronize();
        EXPECT_EQ(y.read<std::int32_t>(), std::vector<std::int32_t>(k_count, 42));
        return f.report();
    }
    static Function wrap(Cache& cache, const Device& device, const Program& program)
    {
        Spec spec = x_to_y(i32, k_count, {program});
        return cache.wrap("f", device, spec, [program](Recorder& r) {
            r.stream().copy(r["y"], r["x"], k_count * 4);
            r.stream().launch(program, "add_scalar", {.grid = {1}, .block = {k_count}}, r["y"], std::int32_t{37},
                              k_count);
        });
    }
    TempDir dir;
};

TEST_F(OtherMachine, WithAnotherArchitectureMissesAndKeepsBothEntries)
{
    const backends::FakeOptions here, there{.architecture = "fake-2"};
    EXPECT_EQ(call(here).outcome, Outcome::recorded);
    const Report elsewhere = call(there);
    EXPECT_EQ(elsewhere.outcome, Outcome::recorded);
    EXPECT_THAT(elsewhere.reason, AllOf(HasSubstr("device.architecture"), HasSubstr("fake-1"), HasSubstr("fake-2")));
    EXPECT_EQ(call(here).outcome, Outcome::replayed);
    EXPECT_EQ(call(there).outcome, Outcome::replayed);
}

TEST_F(OtherMachine, WithANewerDriverMissesUnlessThatIsAccepted)
{
    EXPECT_EQ(call({.driver_version = "1.9"}).outcome, Outcome::recorded);
    const Report strict = call({.driver_version = "1.10"});
    EXPECT_THAT(strict.reason, HasSubstr("driver.version"));
    std::filesystem::remove_all(dir.path() / "cache");
    EXPECT_EQ(call({.driver_version = "1.9"}).outcome, Outcome::recorded);
    EXPECT_EQ(call({.driver_version = "1.10"}, true).outcome, Outcome::replayed);
    EXPECT_EQ(call({.driver_version = "1.8"}, true).outcome, Outcome::recorded) << "older is never accepted";
}

TEST_F(OtherMachine, MemoryOfAnotherDeviceIsRefusedByName)
{
    backends::register_backend(backends::make_fake_backend({.devices = 2}));
    const Device device{"fake:0"}, other{"fake:1"};
    const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
    const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 5)),
                 foreign = other.allocate(k_count * 4);
    Cache cache{options()};
    Function f = wrap(cache, device, program);
    EXPECT_TRUE(failed_with(thrown_by([&] { f({{"x", x}, {"y", foreign}}); }), ErrorCode::invalid_argument,
                            "not memory of this device"));
}

} // namespace
} // namespace warmgraph::test::other_machine_test
