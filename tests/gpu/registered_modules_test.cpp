// Modules that the process itself has loaded. Replays run these modules, so that they see when the host changes
// variables.

#include "cache_options.hpp"
#include "native.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::registered_modules_test {
namespace {

constexpr std::int64_t k_count = 1024;
constexpr const char* k_source = R"(
__constant__ float factor = 1;
__device__ int offset;
extern "C" __global__ void apply(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = x[i] * factor + offset; }
extern "C" __global__ void unused(float* y) { y[0] = 0; })";

class RegisteredModules : public testing::Test {
protected:
    /// Loads a module with factor 2 and offset 7, before the tracker begins to keep device code.
    RegisteredModules()
    {
        const Native& native = Native::instance();
        cubin = Native::compile(k_source);
        module = native.load(cubin);
        write("factor", 2.0F);
        write("offset", 7);
    }
    template <class T>
    void write(const char* name, T value) const
    {
        const Native& native = Native::instance();
        CUdeviceptr at = 0;
        native.check(native.driver().cuModuleGetGlobal(&at, nullptr, module, name), "cuModuleGetGlobal");
        native.check(native.driver().cuMemcpy(at, reinterpret_cast<CUdeviceptr>(&value), sizeof value), "cuMemcpy");
    }
    [[nodiscard]] CacheOptions options(Policy policy = Policy::read_write) const
    {
        return cache_options("registered", dir.path() / "cache", policy);
    }
    [[nodiscard]] static Spec spec()
    {
        Spec result = x_to_y(f32, k_count);
        result.version = "1";
        return result;
    }
    /// Calls with the value 3 in all elements of x. Returns the value of all elements of y.
    [[nodiscard]] float call(Function& function, Outcome expected) const
    {
        const Buffer x = device.upload<float>(std::vector<float>(k_count, 3)), y = device.allocate(k_count * 4);
        const Outcome outcome = function({{"x", x}, {"y", y}});
        EXPECT_EQ(to_string(outcome), to_string(expected)) << function.report().reason;
        device.synchronize();
        const auto values = y.read<float>();
        EXPECT_THAT(values, Each(values.front()));
        return values.front();
    }
    [[nodiscard]] Function wrap(Cache& cache) const
    {
        return cache.wrap("apply", device, spec(), [this](Recorder& r) {
            const Native& native = Native::instance();
            void *x = r["x"].pointer(), *y = r["y"].pointer();
            native.launch(static_cast<CUstream>(r.stream().native()), native.function(module, "apply"), k_count / 256,
                          256, {&x, &y});
        });
    }

    TempDir dir;
    Bytes cubin;
    CUmodule module = nullptr;
    Device device{"cuda:0"};
};

TEST_F(RegisteredModules, AreRecordedWheneverTheyWereLoadedAndReplaysSeeWhatTheHostWrites)
{
    {
        Cache cache{options()};
        Function function = wrap(cache);
        EXPECT_EQ(call(function, Outcome::refused), 13) << "its code is not known";
        device.register_module(module, cubin);
        EXPECT_EQ(call(function, Outcome::recorded), 13);
        write("offset", 9);
        EXPECT_EQ(call(function, Outcome::replayed), 15);
        write("factor", 4.0F);
        EXPECT_EQ(call(function, Outcome::replayed), 21);
    }
    for (const Policy policy : {Policy::read_only, Policy::read_write}) { // the second cache must not harm the entry
        Cache cache{options(policy)};
        Function function = wrap(cache);
        EXPECT_EQ(call(function, Outcome::refused), 21) << "never the recorded 13";
        EXPECT_THAT(function.report().reason, HasSubstr("the module variable 'factor' has other contents"));
    }
    write("factor", 2.0F);
    write("offset", 7);
    Cache cache{options(Policy::require_hit)};
    Function function = cache.load("apply", device, spec());
    EXPECT_EQ(call(function, Outcome::replayed), 13);
    write("offset", 8);
    EXPECT_EQ(call(function, Outcome::replayed), 14);
    EXPECT_EQ(cache.statistics().images_loaded, 0U) << "the process has it loaded";
}

} // namespace
} // namespace warmgraph::test::registered_modules_test
