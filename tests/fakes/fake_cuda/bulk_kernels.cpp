#include "bulk_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>

#include "fake_cuda.h"
#include "faults.hpp"
#include "memory.hpp"
#include "modules.hpp"

// Replaces nvcc's keywords and built-in variables by names that work for threads which run one after another.
// kernels.cu needs no other names.
#define __global__        // NOLINT: the compiler's name
#define __device__        // NOLINT: the compiler's name
#define __grid_constant__ // NOLINT: the compiler's name

namespace {

struct Dimensions {
    unsigned x = 1, y = 1, z = 1;
};
Dimensions gridDim, blockDim, blockIdx, threadIdx; // NOLINT: the compiler's names; the fake's lock guards them

int __ffsll(long long value) { return __builtin_ffsll(value); } // NOLINT: the compiler's names, and the rest of them
float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }              // NOLINT
double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }      // NOLINT
long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); } // NOLINT

template <class Function>
unsigned long long atomic(unsigned long long* at, Function change)
{
    const auto old = *at;
    *at = change(old);
    return old;
}
unsigned long long atomicMin(unsigned long long* at, unsigned long long value) // NOLINT
{
    return atomic(at, [=](auto old) { return std::min(old, value); });
}
unsigned long long atomicMax(unsigned long long* at, unsigned long long value) // NOLINT
{
    return atomic(at, [=](auto old) { return std::max(old, value); });
}
unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) // NOLINT
{
    return atomic(at, [=](auto old) { return old + value; });
}

} // namespace

#include "bulk/kernels.cu" // NOLINT

namespace fake_cuda {
namespace {

enum class Taken : std::uint8_t { nothing, text, text_and_fatbin };

std::atomic<Taken>& taken()
{
    static std::atomic<Taken> what = Taken::nothing;
    return what;
}

bool is_fatbin(const void* data)
{
    constexpr std::uint32_t k_magic = 0xBA55ED50; // the magic number in fatbinary_section.h
    std::uint32_t magic = 0;
    std::memcpy(&magic, data, sizeof magic);
    return magic == k_magic;
}

template <class Work>
BulkRun run_of(void (*kernel)(Work))
{
    return [kernel](const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block, const std::byte* bytes) {
        Work work;
        std::memcpy(&work, bytes, sizeof work);
        gridDim = {grid[0], grid[1], grid[2]};
        blockDim = {block[0], block[1], block[2]};
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel(work);
    };
}

template <class Work>
void add(CUmod_st& module, const char* name, void (*kernel)(Work))
{
    auto function = std::make_unique<CUfunc_st>();
    function->module = &module;
    function->name = name;
    function->bulk = run_of(kernel);
    function->arguments = {{ArgumentKind::value, 0, sizeof(Work)}};
    function->attributes = {{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0}};
    // As in the driver, a kernel is not found if the text does not have it. But a fat binary is compressed, so there
    // any kernel is found.
    const std::string_view text(reinterpret_cast<const char*>(module.image.data()), module.image.size());
    if (text.empty() || text.find(".visible .entry " + std::string(name) + "(") != std::string_view::npos)
        module.functions.emplace(name, std::move(function));
}

} // namespace

/// The module with the only kernel of backends/cuda/src/device/device_heap.cpp, whose text is PTX, too.
std::unique_ptr<CUmod_st> make_heap_module(const void* data)
{
    constexpr std::string_view k_begin{"\n.version 6.4\n"};
    constexpr const char* k_name = "warmgraph_find_heap";
    if (std::memcmp(data, k_begin.data(), std::min<std::size_t>(k_begin.size(), 4)) != 0) return nullptr;
    if (!std::string_view(static_cast<const char*>(data)).contains(k_name)) return nullptr;
    auto module = std::make_unique<CUmod_st>();
    auto function = std::make_unique<CUfunc_st>();
    function->module = module.get();
    function->name = k_name;
    function->arguments = {{ArgumentKind::value, 0, sizeof(CUdeviceptr)}};
    function->attributes = {{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0}};
    function->bulk = [](const auto&, const auto&, const std::byte* found) {
        constexpr std::uint64_t k_in_heap = 0x123456780010; // the fake has no memory at this address
        CUdeviceptr at = 0;
        std::memcpy(&at, found, sizeof at);
        std::memcpy(pointer_to<void>(at), &k_in_heap, sizeof k_in_heap);
    };
    module->functions.emplace(k_name, std::move(function));
    return module;
}

std::unique_ptr<CUmod_st> make_bulk_module(const void* data)
{
    if (auto heap = make_heap_module(data)) return heap;
    const auto* const text = static_cast<const char*>(data);
    const bool is_text = std::strncmp(text, "// make_kernels.sh", 18) == 0;
    const bool is_taken = is_text ? taken() != Taken::nothing : taken() == Taken::text_and_fatbin && is_fatbin(data);
    if (!is_taken) return nullptr;
    auto module = std::make_unique<CUmod_st>();
    const auto* const bytes = static_cast<const std::byte*>(data);
    if (is_text) module->image.assign(bytes, bytes + std::strlen(text));
    add(*module, "warmgraph_disturb", warmgraph_disturb);
    add(*module, "warmgraph_first_difference", warmgraph_first_difference);
    add(*module, "warmgraph_first_other", warmgraph_first_other);
    add(*module, "warmgraph_departure", warmgraph_departure);
    add(*module, "warmgraph_fingerprint", warmgraph_fingerprint);
    add(*module, "warmgraph_words_in", warmgraph_words_in);
    add(*module, "warmgraph_warm_up", warmgraph_warm_up);
    return module;
}

} // namespace fake_cuda

FAKE_CUDA_EXPORT void fake_cuda_take_bulk_kernels(int taken)
{
    fake_cuda::taken() = static_cast<fake_cuda::Taken>(taken);
}
