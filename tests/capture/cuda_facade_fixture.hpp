// Tests the facade on a CUDA device. The tests can also call the driver directly, and are built twice
// (cuda_or_fake.hpp).
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include "cache_options.hpp"
#include "cuda_or_fake.hpp"
#include "facade_fixture.hpp"

namespace warmgraph::test {

using std::int32_t;

inline constexpr std::int64_t k_count = 256;
inline constexpr std::uint64_t k_bytes = k_count * 4;

/// Calls the driver directly, as another framework does.
class Driver {
public:
    Driver()
    {
        CUdevice device = 0;
        CUcontext context = nullptr;
        check(call<decltype(&cuInit)>("cuInit")(0));
        check(call<decltype(&cuDeviceGet)>("cuDeviceGet")(&device, 0));
        check(call<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, device));
        check(call<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context));
    }
    template <class F>
    [[nodiscard]] F call(const char* name) const
    {
        using Lookup = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
        const auto lookup = reinterpret_cast<Lookup>(::dlsym(m_library, "cuGetProcAddress_v2"));
        void* found = nullptr;
        check(lookup(name, &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr));
        EXPECT_NE(found, nullptr) << name;
        return reinterpret_cast<F>(found);
    }
    static void check(CUresult result) { ASSERT_EQ(result, CUDA_SUCCESS); }

    /// Captures the copies from -> through -> to without running them.
    [[nodiscard]] CUgraph capture_copies(const MemoryRef& from, const MemoryRef& through, const MemoryRef& to) const
    {
        CUstream stream = nullptr;
        CUgraph graph = nullptr;
        const auto copy = call<decltype(&cuMemcpyAsync)>("cuMemcpyAsync");
        check(call<decltype(&cuStreamCreate)>("cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING));
        check(
            call<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture")(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        check(copy(through.address.flat(), from.address.flat(), from.size, stream));
        check(copy(to.address.flat(), through.address.flat(), from.size, stream));
        check(call<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(stream, &graph));
        check(call<decltype(&cuStreamDestroy)>("cuStreamDestroy")(stream));
        return graph;
    }
    void destroy(void* graph) const
    {
        check(call<decltype(&cuGraphDestroy)>("cuGraphDestroy")(static_cast<CUgraph>(graph)));
    }

private:
    void* m_library = ::dlopen(k_driver_library, RTLD_NOW | RTLD_GLOBAL);
};

class CudaFacade : public testing::Test {
protected:
    [[nodiscard]] CacheOptions options(Policy policy = Policy::read_write) const
    {
        return cache_options("toy", dir.path() / "cache", policy);
    }
    [[nodiscard]] Spec spec() const
    {
        Spec result = x_to_y(i32, k_count, {program});
        result.version = "1";
        return result;
    }
    [[nodiscard]] static std::vector<int32_t> counting(int32_t first, std::int64_t count = k_count)
    {
        std::vector<int32_t> values(static_cast<std::size_t>(count));
        std::iota(values.begin(), values.end(), first);
        return values;
    }
    [[nodiscard]] Buffer numbers(int32_t first, std::int64_t count = k_count) const
    {
        return device.upload<int32_t>(counting(first, count));
    }
    [[nodiscard]] std::vector<int32_t> read(const Buffer& buffer) const
    {
        device.synchronize();
        return buffer.read<int32_t>();
    }
    /// The function y = x + 1 for any size.
    [[nodiscard]] Function add_one(Cache& cache) const
    {
        return cache.wrap("f", device, spec(), [this](Recorder& r) {
            const auto count = static_cast<int32_t>(r.sizes("x")[0]);
            const Launch launch{.grid = {static_cast<std::uint32_t>(count + 127) / 128}, .block = {128}};
            r.stream().copy(r["y"], r["x"], static_cast<std::uint64_t>(count) * 4);
            r.stream().launch(program, "add_scalar", launch, r["y"], int32_t{1}, count);
        });
    }
    Outcome call(Function& f, std::int64_t count) const
    {
        const Buffer x = numbers(5, count), y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        const Outcome outcome = f({{"x", Tensor{x, i32, {count}, {}}}, {"y", Tensor{y, i32, {count}, {}}}});
        EXPECT_EQ(read(y), counting(6, count));
        return outcome;
    }
    TempDir dir;
    Device device{(choose_driver(), "cuda")};
    Program program = device.program("small", k_program);
};

} // namespace warmgraph::test
