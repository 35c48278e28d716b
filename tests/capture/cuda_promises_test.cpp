// Promises to users of CUDA about host memory, default streams, and the user's own captures. The tests run on a device
// and on the fake driver.
#include <algorithm>
#include <string>
#include <vector>

#include "cuda_facade_fixture.hpp"
#include "promise_device.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"

namespace warmgraph::test::cuda_promises_test {
namespace {

#ifdef WARMGRAPH_FAKE_CUDA
constexpr const char* k_own_code = "kernel add_scalar(memory x, value amount, value n)\n"
                                   "kernel copy(memory to, memory from, value n)\n"
                                   "variable factor = 1\n"
                                   "variable offset = 3\n";
#else
constexpr const char* k_own_code = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
__constant__ int factor = 1;
__device__ int offset = 3;
extern "C" __global__ void add_scalar(int* x, int amount, int n) { int i = INDEX; if (i < n) x[i] += amount; }
extern "C" __global__ void copy(int* to, const int* from, int n) { int i = INDEX; if (i < n) to[i] = from[i] * factor + offset; })";
#endif

class CudaPromises : public DevicePromise {
protected:
    CudaPromises() { device.prepare_recording(); }
    void settle() override { Driver::check(driver.call<decltype(&cuCtxSynchronize)>("cuCtxSynchronize")()); }
    [[nodiscard]] Buffer on_host(std::int32_t value) const
    {
        Buffer buffer = device.allocate_host(k_bytes);
        buffer.write(std::vector<std::int32_t>(k_count, value));
        return buffer;
    }
    [[nodiscard]] static std::int32_t& first_of(Address address)
    {
        return *static_cast<std::int32_t*>(address.pointer());
    }
    [[nodiscard]] Spec with_length() const
    {
        Spec declared = spec(program);
        declared.inputs.push_back(input("length", i32, {k_count}));
        return declared;
    }
    /// A callable that computes y = x + the first number of "length". The host reads this number.
    [[nodiscard]] Callable adding_length()
    {
        return [this](Recorder& r) {
            const std::int32_t length = first_of(r["length"]);
            copy(r, r["y"], r["x"]);
            add_scalar(r, r["y"], length);
        };
    }
    /// A function with y = x + counter, and counter += 1. It uses scratch.
    [[nodiscard]] Function advance(Cache& cache, const std::string& name, const Buffer& counter)
    {
        Spec declared = spec(program);
        declared.states = {state("counter", counter)};
        return cache.wrap(name, device, declared, [this](Recorder& r) {
            const Address scratch = r.alloc("scratch", k_bytes);
            copy(r, scratch, r["x"]);
            add(r, r["y"], scratch, r["counter"]);
            add_scalar(r, r["counter"], 1);
        });
    }
    [[nodiscard]] static CUstream handle(Stream& stream) { return static_cast<CUstream>(stream.native()); }
    /// Captures the work that `work` enqueues in the stream, and instantiates it with the driver.
    template <class Work>
    [[nodiscard]] CUgraphExec captured(CUstream stream, Work&& work) const
    {
        Driver::check(driver.call<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture")(
            stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        work();
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        Driver::check(driver.call<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(stream, &graph));
        Driver::check(driver.call<decltype(&cuGraphInstantiate)>("cuGraphInstantiate")(&exec, graph, 0));
        driver.destroy(graph);
        return exec;
    }
    void launch_graph(CUgraphExec exec, CUstream stream) const
    {
        Driver::check(driver.call<decltype(&cuGraphLaunch)>("cuGraphLaunch")(exec, stream));
    }
    void destroy(CUgraphExec exec) const
    {
        Driver::check(driver.call<decltype(&cuGraphExecDestroy)>("cuGraphExecDestroy")(exec));
    }

    /// Device code that the program itself loads, as a framework does.
    struct OwnCode {
        explicit OwnCode(const Driver& its_driver) : driver(its_driver)
        {
            const Bytes image = compiled();
            Driver::check(driver.call<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, image.data()));
        }
        OwnCode(const OwnCode&) = delete;
        OwnCode& operator=(const OwnCode&) = delete;
        /// Unloads the module, so that its changed variables do not affect other modules.
        ~OwnCode() { Driver::check(driver.call<decltype(&cuModuleUnload)>("cuModuleUnload")(module)); }
        void launch(CUstream stream, const char* kernel, std::vector<void*> arguments) const
        {
            CUfunction function = nullptr;
            Driver::check(
                driver.call<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&function, module, kernel));
            Driver::check(driver.call<decltype(&cuLaunchKernel)>("cuLaunchKernel")(function, 2, 1, 1, 128, 1, 1, 0,
                                                                                   stream, arguments.data(), nullptr));
        }
        /// Enqueues words += 1.
        void advance(CUstream stream, Address words) const
        {
            CUdeviceptr at = words.flat();
            std::int32_t amount = 1, count = k_number;
            launch(stream, "add_scalar", {&at, &amount, &count});
        }
        [[nodiscard]] static Bytes compiled()
        {
            auto opened = backends::make_cuda_backend()->open("");
            return *(*(*opened)->compiler().compile(k_own_code, ""))->image();
        }

        const Driver& driver;
        CUmodule module = nullptr;
    };
    Driver driver;
};

TEST_F(CudaPromises, PageLockedInputThatIsReadOnTheHostIsNoConstant)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1);
            Buffer length = on_host(7);
            Function f = cache.wrap("reads", device, with_length(), adding_length());
            for (const int value : {7, 8, 0, 7}) {
                length.write(std::vector<std::int32_t>(k_count, value));
                call(seen, f, {{"x", x}, {"y", y}, {"length", length}}, {&y, &length});
            }
        },
        HasSubstr("kernel add_scalar"));
}

TEST_F(CudaPromises, PageLockedInputThatDeviceCodeReadsIsReplayed)
{
    expect_recorded([this](Cache& cache, CallResults& seen) {
        const Buffer y = filled(-1);
        Buffer x = on_host(7);
        Function f = cache.wrap("device_reads", device, spec(program), [&](Recorder& r) {
            copy(r, r["y"], r["x"]);
            add_scalar(r, r["y"], 1);
        });
        for (const int value : {7, 8, 0, 7}) {
            x.write(std::vector<std::int32_t>(k_count, value));
            call(seen, f, {{"x", x}, {"y", y}}, {&y});
        }
    });
}

TEST_F(CudaPromises, WhatTheCallableWritesIntoPageLockedMemoryIsNotLost)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1), log = on_host(0);
            Spec declared = spec(program);
            declared.states = {state("log", log)};
            std::int32_t line = 0;
            Function f = cache.wrap("writes", device, declared, [&](Recorder& r) {
                first_of(r["log"]) = line;
                copy(r, r["y"], r["x"]);
            });
            for (line = 11; line < 15; ++line) call(seen, f, {{"x", x}, {"y", y}}, {&y, &log});
        },
        AllOf(HasSubstr("writes region 'log'"), HasSubstr("on the host")));
}

TEST_F(CudaPromises, ManagedMemoryThatIsReadOnTheHostIsRefusedBeforeAnythingIsCaptured)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Buffer x = words(5), y = filled(-1);
            CUdeviceptr managed = 0;
            Driver::check(driver.call<decltype(&cuMemAllocManaged)>("cuMemAllocManaged")(&managed, k_bytes,
                                                                                         CU_MEM_ATTACH_GLOBAL));
            const MemoryRef length{Address::from_flat(managed), k_bytes};
            int calls = 0;
            Function f = cache.wrap("managed", device, with_length(), [&](Recorder& r) {
                ++calls;
                adding_length()(r);
            });
            for (const int value : {7, 8, 0, 7}) {
                std::fill_n(&first_of(length.address), k_count, value);
                call(seen, f, {{"x", x}, {"y", y}, {"length", length}}, {&y});
            }
            EXPECT_EQ(calls, 4) << "once for each call";
            Driver::check(driver.call<decltype(&cuMemFree)>("cuMemFree")(managed));
        },
        HasSubstr("'length' is managed memory"));
}

TEST_F(CudaPromises, ACallInsideTheCallersCaptureAfterOneInAnotherStreamIsPartOfHisGraph)
{
    expect_native(
        [this](Cache& cache, CallResults& seen) {
            Stream one = device.stream(), other = device.stream();
            Buffer x = words(5);
            const Buffer y = filled(-1), counter = filled(0);
            Function f = advance(cache, "captured", counter);
            note(seen, f(one, {{"x", x}, {"y", y}}), f, {&y, &counter});
            Outcome inside = Outcome::refused;
            const CUgraphExec exec = captured(handle(other), [&] { inside = f(other, {{"x", x}, {"y", y}}); });
            note(seen, inside, f, {&y, &counter});
            for (const int first : {5, 70}) { // the user's graph must read the value that x has when it runs
                x.write(std::vector<std::int32_t>(k_count, first));
                launch_graph(exec, handle(other));
                note_results(seen, {&y, &counter});
            }
            note(seen, f(one, {{"x", x}, {"y", y}}), f, {&y, &counter});
            note(seen, f(other, {{"x", x}, {"y", y}}), f, {&y, &counter});
            launch_graph(exec, handle(other));
            note_results(seen, {&y, &counter});
            destroy(exec);
        },
        ElementsAre("recorded", "eager", "replayed", "replayed"));
}

/// All earlier calls were replays. So a library makes its handle, which allocates memory, only in the caller's capture.
TEST_F(CudaPromises, AFirstRunInTheCallersCaptureMayAllocate)
{
    Stream stream = device.stream();
    const Buffer x = words(5), y = filled(-1);
    const auto mode_of_thread = [&] {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        const auto exchange =
            driver.call<decltype(&cuThreadExchangeStreamCaptureMode)>("cuThreadExchangeStreamCaptureMode");
        Driver::check(exchange(&mode));
        CUstreamCaptureMode before = mode;
        Driver::check(exchange(&mode));
        return before;
    };
    std::vector<CUstreamCaptureMode> modes;
    Cache cache{options(Policy::read_write)};
    Function f = cache.wrap("handle", device, spec(program), [&](Recorder& r) {
        modes.push_back(mode_of_thread());
        copy(r, r["y"], r["x"]);
    });
    destroy(captured(handle(stream), [&] { EXPECT_EQ(f(stream, {{"x", x}, {"y", y}}), Outcome::eager); }));
    EXPECT_THAT(modes, ElementsAre(CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_EQ(mode_of_thread(), CU_STREAM_CAPTURE_MODE_GLOBAL) << "and only while it runs";
}

TEST_F(CudaPromises, TheFirstCallOfAllMayBeInsideTheCallersCapture)
{
    expect_native(
        [this](Cache& cache, CallResults& seen) {
            Stream stream = device.stream();
            const Buffer x = words(5), y = filled(-1), counter = filled(0);
            Function f = advance(cache, "captured_first", counter);
            Outcome inside = Outcome::refused;
            const CUgraphExec exec = captured(handle(stream), [&] { inside = f(stream, {{"x", x}, {"y", y}}); });
            note(seen, inside, f, {&counter});
            launch_graph(exec, handle(stream));
            note_results(seen, {&y, &counter});
            for (int i = 0; i < 3; ++i) note(seen, f(stream, {{"x", x}, {"y", y}}), f, {&y, &counter});
            launch_graph(exec, handle(stream));
            note_results(seen, {&y, &counter});
            destroy(exec);
        },
        ElementsAre("eager", "recorded", "replayed", "replayed"));
}

/// The work is a copy and a kernel that changes memory.
TEST_F(CudaPromises, WorkOnTheLegacyDefaultStreamIsRefusedAndHarmsNobody)
{
    for (const CUstream legacy : {CUstream{nullptr}, CU_STREAM_LEGACY}) // NOLINT: the header's cast
        for (const bool is_kernel : {false, true})
            expect_refused(
                [this, legacy, is_kernel](Cache& cache, CallResults& seen) {
                    const auto copy_in = driver.call<decltype(&cuMemcpyAsync)>("cuMemcpyAsync");
                    const OwnCode code{driver};
                    const Buffer x = words(5), y = filled(-1), counter = filled(0);
                    Spec declared = spec(program);
                    declared.states = {state("counter", counter)};
                    const std::string name = legacy == nullptr ? "null" : "legacy";
                    Function f = cache.wrap(name + (is_kernel ? "_kernel" : ""), device, declared, [&](Recorder& r) {
                        if (is_kernel) return code.advance(legacy, r["counter"]);
                        Driver::check(copy_in(r["y"].flat(), r["x"].flat(), k_bytes, legacy));
                    });
                    for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
                },
                AllOf(HasSubstr("outside the recorder's stream"), HasSubstr("in the legacy default stream")));
}

TEST_F(CudaPromises, ASynchronousCopyInsideTheCallableIsRefusedAndHarmsNobody)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const auto copy_now = driver.call<decltype(&cuMemcpy)>("cuMemcpy");
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("copies", device, spec(program), [&](Recorder& r) {
                Driver::check(copy_now(r["y"].flat(), r["x"].flat(), k_bytes));
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        HasSubstr("outside the recorder's stream"));
}

TEST_F(CudaPromises, AGraphThatTheCallableLaunchesIsRefusedAndHarmsNobody)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const OwnCode code{driver};
            const Buffer x = words(5), y = filled(-1), counter = filled(0);
            Stream stream = device.stream();
            const CUgraphExec exec =
                captured(handle(stream), [&] { code.advance(handle(stream), counter.memory().address); });
            Spec declared = spec(program);
            declared.states = {state("counter", counter)};
            Function f =
                cache.wrap("graph", device, declared, [&](Recorder& r) { launch_graph(exec, handle(r.stream())); });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
            destroy(exec);
        },
        AllOf(HasSubstr("outside the recorder's stream"), HasSubstr("cuGraphLaunch of a graph")));
}

/// One table points to declared memory, another one to undeclared memory.
TEST_F(CudaPromises, ATableOfPointersIsRefused)
{
    for (const bool is_declared : {true, false})
        expect_refused(
            [this, is_declared](Cache& cache, CallResults& seen) {
                const Buffer x = words(5), y = filled(-1), hidden = filled(0);
                const Buffer& target = is_declared ? x : hidden;
                const Buffer table = device.upload<std::uint64_t>(std::vector{target.memory().address.flat()});
                Spec declared = spec(program);
                declared.states = {weights("table", table)};
                Function f = cache.wrap(is_declared ? "table" : "hidden", device, declared,
                                        [&](Recorder& r) { copy(r, r["y"], r["x"]); });
                for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
            },
            AllOf(HasSubstr("'table' holds at byte 0 the address"),
                  HasSubstr(is_declared ? "lies in 'x'" : "lies in an allocation of")));
}

class PromisedVariables : public CudaPromises {
protected:
    [[nodiscard]] static CUdeviceptr address_of(const OwnCode& code, const char* variable)
    {
        CUdeviceptr address = 0;
        Driver::check(code.driver.call<decltype(&cuModuleGetGlobal)>("cuModuleGetGlobal")(&address, nullptr,
                                                                                          code.module, variable));
        return address;
    }
    void write(const OwnCode& code, const char* variable, std::int32_t value)
    {
        const auto copy_in = driver.call<decltype(&cuMemcpy)>("cuMemcpy");
        Driver::check(copy_in(address_of(code, variable), reinterpret_cast<CUdeviceptr>(&value), sizeof value));
        settle();
    }
    /// The spec for x -> y with code that is not a Program.
    [[nodiscard]] static Spec own_spec()
    {
        Spec result = x_to_y(i32, k_count);
        result.version = "1";
        return result;
    }
    /// A callable with y = x * factor + offset; on the fake driver y = x.
    [[nodiscard]] static Callable copying(const OwnCode& code)
    {
        return [&code](Recorder& r) {
            CUdeviceptr to = r["y"].flat(), from = r["x"].flat();
            std::int32_t count = k_number;
            code.launch(handle(r.stream()), "copy", {&to, &from, &count});
        };
    }
};

TEST_F(PromisedVariables, OneThatTheHostWroteIsRefusedByName)
{
    for (const char* const variable : {"factor", "offset"})
        expect_refused(
            [this, variable](Cache& cache, CallResults& seen) {
                const OwnCode code{driver};
                const Buffer x = words(5), y = filled(-1);
                Function f = cache.wrap(variable, device, own_spec(), copying(code));
                for (const int value : {7, 9, 9, 2}) {
                    write(code, variable, value);
                    call(seen, f, {{"x", x}, {"y", y}}, {&y});
                }
            },
            HasSubstr(std::string{"the module variable '"} + variable + "' has other contents than in its image"));
}

TEST_F(PromisedVariables, OneThatIsFrozenIsStored)
{
    for (const char* const frozen : {"offset", "*"})
        expect_recorded([this, frozen](Cache& cache, CallResults& seen) {
            const OwnCode code{driver};
            write(code, "offset", 7);
            const Buffer y = filled(-1);
            Spec declared = own_spec();
            declared.frozen_variables = {frozen};
            Function f = cache.wrap(*frozen == '*' ? "all" : "one", device, declared, copying(code));
            for (int i = 0; i < 4; ++i) {
                const Buffer x = words(i);
                call(seen, f, {{"x", x}, {"y", y}}, {&y});
            }
        });
}

// The same cases run on a device in tests/gpu/promises.
#ifdef WARMGRAPH_FAKE_CUDA

/// When the function is recorded, the variable has the value of the image. Only because the program asked for its
/// address, the library knows that the host may write it.
TEST_F(PromisedVariables, OneThatTheHostWritesAfterwardsIsNotReplayedAnyMore)
{
    const OwnCode code{driver};
    const Buffer x = words(5), y = filled(-1);
    Spec declared = spec(program);
    declared.values = {scalar("variant", i32)};
    const auto call_in = [&](Function& f, std::int32_t variant) {
        const Outcome outcome = f({{"x", x}, {"y", y}, {"variant", variant}});
        settle();
        return outcome;
    };
    Cache cache{options(Policy::read_write)};
    Function f = cache.wrap("later", device, declared, copying(code));
    for (const std::int32_t variant : {1, 2}) {
        ASSERT_EQ(call_in(f, variant), Outcome::recorded) << f.report().reason;
        EXPECT_EQ(call_in(f, variant), Outcome::replayed);
    }
    write(code, "factor", 9);
    EXPECT_EQ(call_in(f, 1), Outcome::refused);
    EXPECT_THAT(f.report().reason, HasSubstr("the module variable 'factor'"));
    write(code, "factor", 1); // the same value as in the image
    EXPECT_EQ(call_in(f, 1), Outcome::refused);

    // Other caches do not replay the entry either, because they may not watch device code. Nor does the variant that
    // was not called since.
    Cache read_only{options(Policy::read_only)};
    Function elsewhere = read_only.wrap("later", device, declared, copying(code));
    for (const std::int32_t variant : {1, 2}) {
        EXPECT_EQ(call_in(elsewhere, variant), Outcome::eager);
        EXPECT_THAT(elsewhere.report().reason, HasSubstr("no entry"));
    }
}

/// In the next process, the program asks for the address before its first call, when no entry is loaded yet.
TEST_F(PromisedVariables, AnEntryOfOneThatTheProgramAskedForSinceIsNotLoaded)
{
    const OwnCode code{driver};
    const Buffer x = words(5), y = filled(-1);
    for (const Outcome outcome : {Outcome::recorded, Outcome::replayed, Outcome::refused, Outcome::refused}) {
        Cache cache{options(Policy::read_write)};
        Function f = cache.wrap("next", device, spec(program), copying(code));
        if (outcome == Outcome::refused) write(code, "factor", 1); // the same value as in the image
        EXPECT_EQ(f({{"x", x}, {"y", y}}), outcome) << f.report().reason;
        settle();
        EXPECT_EQ(y.read<std::int32_t>(), x.read<std::int32_t>());
    }
}

TEST_F(PromisedVariables, AResultThatIsCopiedIntoOneIsTheCallsOwn)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const OwnCode code{driver};
            const Buffer y = filled(-1);
            const CUdeviceptr factor = address_of(code, "factor");
            const auto copy_async = driver.call<decltype(&cuMemcpyAsync)>("cuMemcpyAsync");
            Function f = cache.wrap("result", device, spec(program), [&](Recorder& r) {
                copying(code)(r);
                Driver::check(copy_async(factor, r["x"].flat(), 4, handle(r.stream())));
            });
            for (const int first : {5, 50, 1, 7}) {
                const Buffer x = words(first);
                call(seen, f, {{"x", x}, {"y", y}}, {&y});
                auto& held = seen.results.back().emplace_back();
                Driver::check(driver.call<decltype(&cuMemcpy)>("cuMemcpy")(reinterpret_cast<CUdeviceptr>(&held), factor,
                                                                           sizeof held));
            }
        },
        Not(IsEmpty()));
}

#endif

} // namespace
} // namespace warmgraph::test::cuda_promises_test
