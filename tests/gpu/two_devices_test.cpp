// Tests two devices in one process, and two contexts on one device: each function works on its own device, and the
// caller's context stays current.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "lacking.hpp"
#include "native.hpp"
#include "run_self.hpp"

namespace warmgraph::test::two_devices_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_kernels = R"(
extern "C" __global__ void add(const float* x, float* y, int n, float summand) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + summand;
})";
constexpr std::int64_t k_count = 1000;
constexpr std::uint64_t k_bytes = k_count * 4;
constexpr Launch k_launch{.grid = {8, 1, 1}, .block = {128, 1, 1}};

CUcontext current()
{
    CUcontext context = nullptr;
    const Native& native = Native::instance();
    native.check(native.driver().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    return context;
}

void make_current(CUcontext context)
{
    const Native& native = Native::instance();
    native.check(native.find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
}

/// The primary context of a device. It is retained while the device is open.
CUcontext primary_context(CUdevice device)
{
    CUcontext context = nullptr;
    const Native& native = Native::instance();
    native.check(native.driver().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    native.check(native.driver().cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
    return context;
}

CacheOptions options_for(const fs::path& folder, Policy policy = Policy::read_write)
{
    return cache_options("devices", folder / "cache", policy);
}

std::vector<float> counting(float first)
{
    std::vector<float> values(k_count);
    std::iota(values.begin(), values.end(), first);
    return values;
}

/// A device with the memory of a function y = x + 1, which uses scratch memory.
struct Place {
    explicit Place(const std::string& id) : device{id} {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    [[nodiscard]] static Spec spec() { return x_to_y(f32, k_count); }
    [[nodiscard]] Function wrap(Cache& cache)
    {
        Spec declared = spec();
        declared.code = {program};
        return cache.wrap("add", device, declared, [this](Recorder& r) {
            seen.push_back(current());
            const Address sum = r.alloc("sum", k_bytes);
            r.stream().launch(program, "add", k_launch, r["x"], sum, static_cast<std::int32_t>(k_count), 1.0F);
            r.stream().copy(r["y"], sum, k_bytes);
        });
    }
    struct CallResult {
        Outcome outcome = Outcome::eager;
        bool is_right = false; ///< whether the result is right
    };
    CallResult call(Function& function, float first)
    {
        x.write(counting(first));
        const Outcome outcome = function({{"x", x}, {"y", y}});
        device.synchronize();
        return {outcome, y.read<float>() == counting(first + 1)};
    }

    Device device;
    Program program = device.program("add", k_kernels);
    Buffer x = device.allocate(k_bytes), y = device.allocate(k_bytes);
    std::vector<CUcontext> seen; ///< the contexts that were current in the callable
};

// --- Two devices

/// The report that another process made about its first call on `device`. That process also checks the result.
struct Answer {
    std::string outcome, reason;
};

int answer(const fs::path& folder, const std::string& device)
{
    try {
        Place place{device};
        Cache cache{options_for(folder)};
        Function add = place.wrap(cache);
        const auto [outcome, is_right] = place.call(add, 5);
        if (!is_right) throw std::runtime_error("a wrong result");
        std::ofstream{folder / "answer"} << to_string(outcome) << "\n" << add.report().reason << "\n";
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", device.c_str(), error.what());
        return 1;
    }
}

/// Makes the first call in a new process. `visible`: the only device that the process can use, in the form of
/// CUDA_VISIBLE_DEVICES; empty: all devices.
Answer ask_process(const fs::path& folder, const std::string& device, const std::string& visible = "")
{
    const std::vector<std::string> narrowed{"/usr/bin/env", "CUDA_VISIBLE_DEVICES=" + visible};
    EXPECT_EQ(run_self({folder.string(), device}, visible.empty() ? std::vector<std::string>{} : narrowed), 0)
        << device << " " << visible;
    Answer result;
    std::ifstream file{folder / "answer"};
    std::getline(file, result.outcome);
    std::getline(file, result.reason);
    fs::remove(folder / "answer");
    return result;
}

/// The device's id "GPU-...", as CUDA_VISIBLE_DEVICES accepts it. It does not depend on this process's own setting.
std::string uuid_of(CUdevice device)
{
    CUuuid uuid{};
    Native::instance().check(Native::instance().driver().cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid");
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        std::array<char, 3> digits{};
        std::snprintf(digits.data(), digits.size(), "%02x",
                      static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
        text += digits.data();
    }
    return text;
}

class TwoDevices : public testing::Test {
protected:
    void SetUp() override
    {
        const Native& native = Native::instance();
        int count = 0;
        native.check(native.driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
        if (count < 2) WARMGRAPH_SKIP_LACKING("a second CUDA device");
        places.push_back(std::make_unique<Place>("cuda:0"));
        places.push_back(std::make_unique<Place>("cuda:1"));
        if (places[0]->device.name() != places[1]->device.name())
            WARMGRAPH_SKIP_LACKING("a second CUDA device of the first one's kind");
    }

    TempDir dir;
    std::vector<std::unique_ptr<Place>> places;
};

TEST_F(TwoDevices, RecordAndReplayByTurnsInOneThreadWhoseContextStays)
{
    const CUcontext before = current();
    const std::array primary{primary_context(0), primary_context(1)};
    ASSERT_NE(primary[0], primary[1]);
    const std::array callers{primary[0], primary[1], CUcontext{nullptr}};
    std::array caches{Cache{options_for(dir.path())}, Cache{options_for(dir.path())}};
    std::array functions{places[0]->wrap(caches[0]), places[1]->wrap(caches[1])};
    for (std::size_t round = 0; round < 9; ++round) {
        for (std::size_t at = 0; at < 2; ++at) {
            make_current(callers[(round + at) % callers.size()]);
            const CUcontext caller = current();
            const auto [outcome, is_right] = places[at]->call(functions[at], static_cast<float>(100 * round + at));
            EXPECT_EQ(current(), caller) << round << ", cuda:" << at;
            EXPECT_EQ(outcome, round == 0 ? Outcome::recorded : Outcome::replayed) << functions[at].report().reason;
            EXPECT_TRUE(is_right) << round << ", cuda:" << at;
        }
    }
    make_current(before);
    for (std::size_t at = 0; at < 2; ++at) EXPECT_THAT(places[at]->seen, Each(primary[at])) << at;
}

/// Guards compare the device's name for each tensor, and another process may give this name to another device.
TEST_F(TwoDevices, AnEntryOfOneIsAMissOnTheOtherAndAHitWhereThatHasItsName)
{
    EXPECT_EQ(ask_process(dir.path(), "cuda:0").outcome, "recorded");
    EXPECT_EQ(ask_process(dir.path(), "cuda:0", uuid_of(1)).outcome, "replayed");
    const auto thrown = thrown_by([&] {
        Cache strict{options_for(dir.path(), Policy::require_hit)};
        Function add = places[1]->wrap(strict);
        places[1]->call(add, 5);
    });
    EXPECT_TRUE(failed_with(thrown, ErrorCode::miss_forbidden, "input x: device cuda:0 recorded, cuda:1 now"));
    const Answer other = ask_process(dir.path(), "cuda:1");
    EXPECT_EQ(other.outcome, "recorded");
    EXPECT_THAT(other.reason, HasSubstr("input x: device cuda:0 recorded, cuda:1 now"));
    for (const char* device : {"cuda:0", "cuda:1"}) EXPECT_EQ(ask_process(dir.path(), device).outcome, "replayed");
}

TEST_F(TwoDevices, RestoreAndReplayAtOnceEachInAThreadOfItsOwn)
{
    for (const auto& place : places) {
        Cache cache{options_for(dir.path())};
        Function add = place->wrap(cache);
        const auto [outcome, is_right] = place->call(add, 5);
        ASSERT_TRUE(is_right);
        ASSERT_EQ(outcome, Outcome::recorded) << add.report().reason;
    }
    std::array<std::string, 2> failures;
    const auto restore_and_replay = [&](std::size_t at) {
        for (int round = 0; round < 100; ++round) {
            Cache cache{options_for(dir.path())};
            Function add = places[at]->wrap(cache);
            for (int call = 0; call < 5; ++call) {
                const auto [outcome, is_right] = places[at]->call(add, static_cast<float>(10 * round + call));
                if (outcome != Outcome::replayed) return "no hit: " + add.report().reason;
                if (!is_right) return "a wrong result in round " + std::to_string(round);
                if (current() != nullptr) return std::string{"a context was left behind"};
            }
        }
        return std::string{};
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t at = 0; at < failures.size(); ++at)
            threads.emplace_back([&, at] {
                try {
                    failures[at] = restore_and_replay(at);
                } catch (const std::exception& error) {
                    failures[at] = error.what();
                }
            });
    }
    EXPECT_EQ(failures, (std::array<std::string, 2>{}));
}

// --- Two contexts of one device

/// A context that the caller made. It is current in its thread while this object lives.
class OtherContext {
public:
    OtherContext()
    {
        const Native& native = Native::instance();
        native.check(native.find<decltype(&cuCtxCreate)>("cuCtxCreate")(&m_context, nullptr, 0, 0), "cuCtxCreate");
    }
    OtherContext(const OtherContext&) = delete;
    OtherContext& operator=(const OtherContext&) = delete;
    ~OtherContext() { static_cast<void>(Native::instance().find<decltype(&cuCtxDestroy)>("cuCtxDestroy")(m_context)); }
    [[nodiscard]] CUcontext get() const noexcept { return m_context; }

private:
    CUcontext m_context = nullptr;
};

class TwoContexts : public testing::Test {
protected:
    TempDir dir;
};

TEST_F(TwoContexts, RecordingAndReplayingGoOnInThePrimaryOneAndTheCallersStays)
{
    const OtherContext other;
    ASSERT_EQ(current(), other.get());
    Place place{"cuda:0"};
    EXPECT_EQ(current(), other.get());
    ASSERT_NE(primary_context(0), other.get());
    for (const Outcome expected : {Outcome::recorded, Outcome::replayed}) {
        Cache cache{options_for(dir.path())};
        Function add = place.wrap(cache);
        for (int call = 0; call < 2; ++call) {
            const auto [outcome, is_right] = place.call(add, static_cast<float>(call));
            EXPECT_TRUE(is_right);
            EXPECT_EQ(outcome, call == 0 ? expected : Outcome::replayed) << add.report().reason;
            EXPECT_EQ(current(), other.get());
        }
    }
    EXPECT_FALSE(place.seen.empty());
    EXPECT_THAT(place.seen, Each(primary_context(0)));
}

TEST_F(TwoContexts, AKernelThatWasCapturedInTheOtherIsNotAdopted)
{
    Place place{"cuda:0"};
    place.device.prepare_recording(); // with this the code is known, so that only the context can make the call fail
    const Native& native = Native::instance();
    const Driver& driver = native.driver();
    const Bytes cubin = Native::compile(k_kernels);
    const OtherContext other;
    const CUfunction add = native.function(native.load(cubin), "add");
    CUstream stream = native.stream();
    native.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    void *x = place.x.memory().address.pointer(), *y = place.y.memory().address.pointer();
    std::int32_t count = k_count;
    float summand = 1;
    native.launch(stream, add, 8, 128, {&x, &y, &count, &summand});
    CUgraph graph = nullptr;
    native.check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");

    Cache cache{options_for(dir.path())};
    Spec spec = Place::spec();
    spec.version = "1";
    const NativeCapture capture{.graph = graph, .regions = {{"x", place.x}, {"y", place.y}}};
    const auto thrown = thrown_by([&] { (void)cache.adopt("add", place.device, spec, {.first = capture}); });
    EXPECT_EQ(current(), other.get());
    native.check(driver.cuGraphDestroy(graph), "cuGraphDestroy");
    ASSERT_TRUE(failed_with(thrown, ErrorCode::not_recordable));
    EXPECT_THAT(thrown->what(),
                AllOf(HasSubstr("kernel 'add'"), HasSubstr("another context than the device's primary one")));
}

} // namespace
} // namespace warmgraph::test::two_devices_test

int main(int argc, char** argv)
{
    if (argc == 4 && std::string_view{argv[1]} == "--child")
        return warmgraph::test::two_devices_test::answer(argv[2], argv[3]);
    testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
