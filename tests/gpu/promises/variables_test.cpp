// Promises about module variables that the host writes later, that the work changes, or that hold a result. Promises
// that the fake driver can also show are in tests/capture/cuda_promises_test.cpp.
#include <filesystem>

#include <dlfcn.h>

#include "promise_fixture.hpp"

namespace warmgraph::test::variables_test {
namespace {

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
__constant__ int factor = 1;
__device__ int offset = 3;
__device__ int result;
__device__ int phase;
extern "C" __global__ void apply(const int* x, int* y) { int i = INDEX; y[i] = x[i] * factor + offset; }
extern "C" __global__ void sum(const int* x, int* y) { int i = INDEX; y[i] = x[i]; if (i == 0) result = x[0] + x[1]; }
extern "C" __global__ void add_phase(const int* x, int* y) { int i = INDEX; y[i] = x[i] + phase; }
extern "C" __global__ void advance_phase() { phase = (phase + 1) % 4; })";

class PromisedVariables : public GpuPromise {
protected:
    /// A callable that launches these kernels x -> y in this order.
    template <class Loaded>
    [[nodiscard]] Callable launching(const Loaded& code, std::vector<const char*> kernels) const
    {
        return [this, &code, kernels = std::move(kernels)](Recorder& r) {
            void *x = r["x"].pointer(), *y = r["y"].pointer();
            for (const char* kernel : kernels) launch(stream_of(r), code[kernel], {&x, &y});
        };
    }
};

TEST_F(PromisedVariables, WhatTheHostWritesAfterTheFirstCallIsSeenByTheNext)
{
    const Scene scene = [this](Cache& cache, CallResults& seen) {
        const Code code{k_source};
        const Buffer x = words(5), y = filled(-1);
        Function f = cache.wrap("later", device, plain_spec(), launching(code, {"apply"}));
        for (const int value : {0, 9, 9, 3}) {
            if (value != 0) code.write("offset", value); // with 0 the first call uses the image's value
            call(seen, f, {{"x", x}, {"y", y}}, {&y});
        }
    };
    expect_native(scene, SizeIs(4));
}

TEST_F(PromisedVariables, AManagedVariableThatTheHostWritesIsSeenByEachCall)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Code code{R"(
__managed__ int offset = 3;
extern "C" __global__ void apply(const int* x, int* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i] + offset; })"};
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("managed", device, plain_spec(), launching(code, {"apply"}));
            for (const int value : {7, 9, 9, 2}) {
                code.write("offset", value);
                call(seen, f, {{"x", x}, {"y", y}}, {&y});
            }
        },
        Not(IsEmpty()));
}

TEST_F(PromisedVariables, AResultInASymbolIsTheCallsOwn)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const Code code{k_source};
            const Buffer y = filled(-1);
            Function f = cache.wrap("symbol", device, plain_spec(), launching(code, {"sum"}));
            for (const int first : {5, 50, 0, 7}) {
                const Buffer x = words(first);
                call(seen, f, {{"x", x}, {"y", y}}, {&y});
                seen.results.back().push_back(code.read<std::int32_t>("result"));
            }
        },
        HasSubstr("the module variable 'result'"));
}

TEST_F(PromisedVariables, AResultInASymbolThatHappensToBeItsImageIsTheCallsOwn)
{
    const Scene scene = [this](Cache& cache, CallResults& seen) {
        const Code code{k_source};
        const Buffer y = filled(-1);
        Function f = cache.wrap("zero", device, plain_spec(), launching(code, {"sum"}));
        for (const bool is_zero : {true, false, true, false}) {
            const Buffer x = is_zero ? filled(0) : words(5);
            call(seen, f, {{"x", x}, {"y", y}}, {&y});
            seen.results.back().push_back(code.read<std::int32_t>("result"));
        }
    };
    expect_native(scene, SizeIs(4));
}

/// A library file that has the name of cuBLAS's file, and code in its data. The code is loaded as CUDA's runtime does.
class KnownLibrary {
public:
    explicit KnownLibrary(std::string_view source)
    {
        const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "known_library/libcublas.so";
        m_file = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (m_file == nullptr) throw std::runtime_error(dlerror());
        void* const code = dlsym(m_file, "code");
        const Bytes cubin = Native::compile(source);
        std::memcpy(code, cubin.data(), cubin.size());
        m_native.check(m_native.find<decltype(&cuLibraryLoadData)>("cuLibraryLoadData")(
                           &m_library, code, nullptr, nullptr, 0, nullptr, nullptr, 0),
                       "cuLibraryLoadData");
    }
    KnownLibrary(const KnownLibrary&) = delete;
    KnownLibrary& operator=(const KnownLibrary&) = delete;
    ~KnownLibrary()
    {
        m_native.find<decltype(&cuLibraryUnload)>("cuLibraryUnload")(m_library);
        dlclose(m_file);
    }
    /// The CUkernel, converted to a CUfunction. Launches accept it.
    [[nodiscard]] CUfunction operator[](const char* name) const
    {
        CUkernel kernel = nullptr;
        m_native.check(m_native.find<decltype(&cuLibraryGetKernel)>("cuLibraryGetKernel")(&kernel, m_library, name),
                       "cuLibraryGetKernel");
        return reinterpret_cast<CUfunction>(kernel);
    }
    void write(const char* variable, std::int32_t value) const
    {
        CUdeviceptr address = 0;
        std::size_t size = 0;
        m_native.check(
            m_native.find<decltype(&cuLibraryGetGlobal)>("cuLibraryGetGlobal")(&address, &size, m_library, variable),
            "cuLibraryGetGlobal");
        m_native.check(m_native.driver().cuMemcpy(address, reinterpret_cast<CUdeviceptr>(&value), sizeof value),
                       "cuMemcpy");
        m_native.check(m_native.driver().cuCtxSynchronize(), "cuCtxSynchronize");
    }

private:
    const Native& m_native = Native::instance();
    void* m_file = nullptr;
    CUlibrary m_library = nullptr;
};

TEST_F(PromisedVariables, ConstantsOfAKnownLibraryAreStoredAndCounted)
{
    expect_recorded([this](Cache& cache, CallResults& seen) {
        const KnownLibrary code{k_source};
        code.write("factor", 7);
        const Buffer x = words(5), y = filled(-1);
        Function f = cache.wrap("library", device, plain_spec(), launching(code, {"apply"}));
        for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        if (seen.outcomes.back() == "replayed") {
            EXPECT_THAT(cache.readable("library"), HasSubstr("1 __constant__ variable of libraries' images"));
        }
    });
}

TEST_F(PromisedVariables, OtherVariablesOfAKnownLibraryAreRefused)
{
    expect_refused(
        [this](Cache& cache, CallResults& seen) {
            const KnownLibrary code{k_source};
            code.write("offset", 9); // "offset" is a __device__ variable
            const Buffer x = words(5), y = filled(-1);
            Function f = cache.wrap("library_state", device, plain_spec(), launching(code, {"apply"}));
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y});
        },
        HasSubstr("the module variable 'offset' has other contents than in its image"));
}

/// The variable starts at 0, or at a value from which the answer brings it back to the image's value.
TEST_F(PromisedVariables, APhaseOfPeriodFourIsNoConstant)
{
    for (const int start : {0, 3})
        expect_refused(
            [this, start](Cache& cache, CallResults& seen) {
                const Code code{k_source};
                if (start != 0) code.write("phase", start);
                const Buffer x = words(5), y = filled(-1);
                Function f = cache.wrap(start == 0 ? "phase" : "phase_back", device, plain_spec(), [&](Recorder& r) {
                    void *x_now = r["x"].pointer(), *y_now = r["y"].pointer();
                    launch(stream_of(r), code["add_phase"], {&x_now, &y_now});
                    native.launch(stream_of(r), code["advance_phase"], 1, 1, {});
                });
                for (int i = 0; i < 4; ++i) {
                    call(seen, f, {{"x", x}, {"y", y}}, {&y});
                    seen.results.back().push_back(code.read<std::int32_t>("phase"));
                }
            },
            AnyOf(HasSubstr("the module variable 'phase'"), HasSubstr("gives other results than the call itself")));
}

} // namespace
} // namespace warmgraph::test::variables_test
