// Memory that the callable itself reads and writes on the host.
#include <algorithm>

#include "promise_fixture.hpp"

namespace warmgraph::test::host_memory_test {
namespace {

using testing::HasSubstr;

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
extern "C" __global__ void add(const int* x, int amount, int* y) { int i = INDEX; y[i] = x[i] + amount; })";

class PromisedHostMemory : public GpuPromise {
protected:
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
    Program program = device.program("host", k_source);
};

TEST_F(PromisedHostMemory, PageLockedInputThatIsReadOnTheHostIsNoConstant)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1);
            Buffer length = on_host(7);
            Function f = cache.wrap("reads", device, with_length(), [&](Recorder& r) {
                r.stream().launch(program, "add", k_launch, r["x"], first_of(r["length"]), r["y"]);
            });
            for (const int value : {7, 8, 0, 7}) {
                length.write(std::vector<std::int32_t>(k_count, value));
                call(seen, f, {{"x", x}, {"y", y}, {"length", length}}, {&y, &length});
            }
        },
        HasSubstr("kernel add"));
}

TEST_F(PromisedHostMemory, PageLockedInputThatDeviceCodeReadsIsReplayed)
{
    expect_recorded([this](Cache& cache, Seen& seen) {
        const Buffer y = filled(-1);
        Buffer x = on_host(7);
        Function f = cache.wrap("device_reads", device, spec(program), [&](Recorder& r) {
            r.stream().launch(program, "add", k_launch, r["x"], std::int32_t{1}, r["y"]);
        });
        for (const int value : {7, 8, 0, 7}) {
            x.write(std::vector<std::int32_t>(k_count, value));
            call(seen, f, {{"x", x}, {"y", y}}, {&y});
        }
    });
}

TEST_F(PromisedHostMemory, WhatTheCallableWritesIntoPageLockedMemoryIsNotLost)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1), log = on_host(0);
            Spec declared = spec(program);
            declared.states = {state("log", log)};
            std::int32_t line = 0;
            Function f = cache.wrap("writes", device, declared, [&](Recorder& r) {
                first_of(r["log"]) = line;
                r.stream().launch(program, "add", k_launch, r["x"], std::int32_t{1}, r["y"]);
            });
            for (line = 11; line < 15; ++line) call(seen, f, {{"x", x}, {"y", y}}, {&y, &log});
        },
        testing::AllOf(HasSubstr("writes region 'log'"), HasSubstr("on the host")));
}

/// Small, and there for one scene.
class Managed {
public:
    Managed(const Native& native, std::uint64_t bytes) : m_native(native), m_bytes(bytes)
    {
        native.check(native.find<decltype(&cuMemAllocManaged)>("cuMemAllocManaged")(&m_at, bytes, CU_MEM_ATTACH_GLOBAL),
                     "cuMemAllocManaged");
    }
    Managed(const Managed&) = delete;
    Managed& operator=(const Managed&) = delete;
    ~Managed() { static_cast<void>(m_native.driver().cuMemFree(m_at)); }
    [[nodiscard]] MemoryRef memory() const { return {Address::from_flat(m_at), m_bytes}; }
    [[nodiscard]] std::int32_t* words() const { return static_cast<std::int32_t*>(memory().address.pointer()); }

private:
    const Native& m_native;
    CUdeviceptr m_at = 0;
    std::uint64_t m_bytes;
};

TEST_F(PromisedHostMemory, ManagedMemoryThatIsReadOnTheHostIsRefusedBeforeAnythingIsCaptured)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1);
            const Managed length{native, k_bytes};
            Function f = cache.wrap("managed", device, with_length(), [&](Recorder& r) {
                r.stream().launch(program, "add", k_launch, r["x"], first_of(r["length"]), r["y"]);
            });
            for (const int value : {7, 8, 0, 7}) {
                std::fill_n(length.words(), k_count, value);
                call(seen, f, {{"x", x}, {"y", y}, {"length", length.memory()}}, {&y});
            }
        },
        HasSubstr("'length' is managed memory"));
}

} // namespace
} // namespace warmgraph::test::host_memory_test
