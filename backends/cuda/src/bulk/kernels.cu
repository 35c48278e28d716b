// The device's part of bulk_memory.cpp. kernels.ptx is made from it and committed (see README.md), so that building
// warmgraph needs no nvcc. The tests' fake_cuda/bulk_kernels.cpp compiles it for the host and runs a launch's threads
// one after another, so threads may only communicate by atomics and warp_sum().
//
// A thread takes 16-byte blocks, a grid's width apart. The last block may be shorter; its missing bytes read as 0.
#include <cassert>

#include "kernel_work.hpp"

using namespace warmgraph::backends::cuda::bulk;

namespace {

struct alignas(16) Block {
    u64 low, high;
};
constexpr u64 k_block = sizeof(Block);

__device__ u64 first_block() { return (u64{blockIdx.x} * blockDim.x + threadIdx.x) * k_block; }
__device__ u64 stride() { return u64{gridDim.x} * blockDim.x * k_block; }

__device__ u64 load_bytes(const Byte* at, u64 count)
{
    u64 word = 0;
#pragma unroll 1
    for (u64 i = 0; i < count; ++i) word |= u64{at[i]} << (8 * i);
    return word;
}

__device__ u64 load_word(const Byte* at, u64 alignment)
{
    if (alignment >= 8) return *reinterpret_cast<const u64*>(at);
    if (alignment == 4) {
        const auto* const halves = reinterpret_cast<const unsigned*>(at);
        return halves[0] | u64{halves[1]} << 32;
    }
    u64 word = 0;
    for (int i = 0; i < 8; ++i) word |= u64{at[i]} << (8 * i);
    return word;
}

__device__ Block load_block(const Byte* memory, u64 offset, u64 size, u64 alignment)
{
    const Byte* const at = memory + offset;
    const u64 left = size - offset;
    if (left < k_block)
        return {load_bytes(at, left < 8 ? left : 8), left > 8 ? load_bytes(at + 8, left - 8) : 0};
    if (alignment >= k_block) return *reinterpret_cast<const Block*>(at);
    return {load_word(at, alignment), load_word(at + 8, alignment)};
}

__device__ void store_block(Byte* memory, u64 offset, u64 size, u64 alignment, Block block)
{
    Byte* const at = memory + offset;
    const u64 left = size - offset;
    if (left >= k_block && alignment >= k_block) {
        *reinterpret_cast<Block*>(at) = block;
        return;
    }
#pragma unroll 1
    for (u64 i = 0; i < k_block && i < left; ++i)
        at[i] = static_cast<Byte>((i < 8 ? block.low : block.high) >> (8 * (i % 8)));
}

/// Like other_exponent() of bulk_memory.cpp in backends/api.
__device__ u64 other_exponent(u64 high)
{
    const u64 exponent = high & 0x7F;
    return (high & 0x80) | (exponent < 0x30 ? 0x3F : exponent ^ 1);
}

__device__ u64 disturbed(u64 word, const DisturbWork& work)
{
    if (work.is_real == 0) return word ^ work.ones;
    u64 result = word;
#pragma unroll 1
    for (u64 at = work.element - 1; at < 8; at += work.element) {
        const u64 old = word >> (8 * at) & 0xFF;
        result ^= (other_exponent(old) ^ old) << (8 * at);
    }
    return result;
}

/// Offset in the block of the first byte that is not 0. REQUIRES: such a byte exists.
__device__ u64 first_set(Block block)
{
    const auto at = [](u64 word) { return static_cast<u64>(__ffsll(static_cast<long long>(word)) - 1) / 8; };
    return block.low != 0 ? at(block.low) : 8 + at(block.high);
}

__device__ u64 warp_sum(u64 value)
{
#ifdef __CUDA_ARCH__
    for (int width = 16; width > 0; width /= 2) value += __shfl_down_sync(~0U, value, width);
#endif
    return value;
}

/// True if warp_sum() returns the sum on this thread.
__device__ bool is_leader()
{
#ifdef __CUDA_ARCH__
    return threadIdx.x % 32 == 0;
#else
    return true;
#endif
}

__device__ u64 mix(u64 x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53;
    return x ^ x >> 33;
}

/// The numbers of a type: values, and the exponents that define one rounding.
struct Half {
    using Value = float;
    static constexpr int k_fraction = 10, k_smallest = -14;
    static __device__ float value(u64 bits)
    {
        const auto sign = static_cast<unsigned>(bits & 0x8000) << 16;
        const auto exponent = static_cast<unsigned>(bits >> 10 & 31), fraction = static_cast<unsigned>(bits & 1023);
        if (exponent == 31) return __uint_as_float(sign | 0x7F800000U | fraction << 13);
        if (exponent != 0) return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
        const float small = static_cast<float>(fraction) * 0x1p-24F;
        return sign != 0 ? -small : small;
    }
};

struct BrainHalf {
    using Value = float;
    static constexpr int k_fraction = 7, k_smallest = -126;
    static __device__ float value(u64 bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};

struct Single {
    using Value = float;
    static constexpr int k_fraction = 23, k_smallest = -126;
    static __device__ float value(u64 bits) { return __uint_as_float(static_cast<unsigned>(bits)); }
};

struct Double {
    using Value = double;
    static constexpr int k_fraction = 52, k_smallest = -1022;
    static __device__ double value(u64 bits) { return __longlong_as_double(static_cast<long long>(bits)); }
};

__device__ double infinity() { return __longlong_as_double(0x7FF0000000000000LL); }
__device__ u64 bits_of(double value) { return static_cast<u64>(__double_as_longlong(value)); }
__device__ bool is_finite(double value) { return (bits_of(value) & 0x7FF0000000000000ULL) != 0x7FF0000000000000ULL; }

/// Returns e, where one rounding is 2^e, at the larger finite magnitude.
template <class Type>
__device__ int rounding(double low, double high)
{
    const u64 a = is_finite(low) ? bits_of(low) & ~(1ULL << 63) : 0;
    const u64 b = is_finite(high) ? bits_of(high) & ~(1ULL << 63) : 0;
    const int exponent = static_cast<int>((a > b ? a : b) >> 52) - 1023;
    return (exponent < Type::k_smallest ? Type::k_smallest : exponent) - Type::k_fraction;
}

/// Multiplies by 2^exponent, in two steps because that power may exceed a double's range.
__device__ double scaled(double value, int exponent)
{
    const int half = exponent / 2;
    const auto power = [](int e) { return __longlong_as_double((1023LL + e) << 52); };
    return value * power(half) * power(exponent - half);
}

/// Returns the distance in roundings of a value outside.
template <class Type>
__device__ double distance(double value, double low, double high)
{
    const double bound = value > high ? high : low;
    if (!is_finite(value) || !is_finite(bound)) return infinity();
    const int exponent = rounding<Type>(low, high);
    // Clear the sign: the bits of -0 would be greater than any number's.
    return __longlong_as_double(
        static_cast<long long>(bits_of(scaled(value, -exponent) - scaled(bound, -exponent)) & ~(1ULL << 63)));
}

__device__ u64 load_element(const Byte* at, const DepartureWork& work)
{
    if (work.alignment < work.element) return load_bytes(at, work.element);
    switch (work.element) {
    case 1: return *at;
    case 2: return *reinterpret_cast<const unsigned short*>(at);
    case 4: return *reinterpret_cast<const unsigned*>(at);
    default: return *reinterpret_cast<const u64*>(at);
    }
}

/// Returns the distance outside, in roundings; negative if inside.
template <class Type>
__device__ double departure_of(u64 bits, u64 offset, const DepartureWork& work)
{
    using Value = typename Type::Value;
    const Value value = Type::value(bits);
    Value low = static_cast<Value>(infinity()), high = -low;
    bool has_nan = false;
#pragma unroll 1
    for (u64 i = 0; i < work.count; ++i) {
        const Value other = Type::value(load_element(work.others[i] + offset, work));
        has_nan = has_nan || other != other;
        if (other < low) low = other;
        if (other > high) high = other;
    }
    // The initial low and high are infinities too, which is right if other values are infinite.
    if (value != value) return has_nan ? -1 : infinity();
    if (low <= value && value <= high) return -1;
    if (low > high) return infinity();
    return distance<Type>(value, low, high);
}

__device__ double departure_of(u64 bits, u64 offset, const DepartureWork& work)
{
    switch (work.numbers) {
    case Numbers::f16: return departure_of<Half>(bits, offset, work);
    case Numbers::bf16: return departure_of<BrainHalf>(bits, offset, work);
    case Numbers::f32: return departure_of<Single>(bits, offset, work);
    case Numbers::f64: return departure_of<Double>(bits, offset, work);
    default: break;
    }
#pragma unroll 1
    for (u64 i = 0; i < work.count; ++i)
        if (load_element(work.others[i] + offset, work) == bits) return -1;
    return infinity();
}

/// Adds the elements of a block that equals none of the others as a whole.
__device__ void add_departures(Tally& sum, Block block, u64 offset, const DepartureWork& work)
{
#pragma unroll 1
    for (u64 at = 0; at < k_block && offset + at < work.size; at += work.element) {
        u64 bits = (at < 8 ? block.low : block.high) >> (8 * (at % 8));
        if (work.element < 8) bits &= (1ULL << (8 * work.element)) - 1;
        const double far = departure_of(bits, offset + at, work);
        // With 0 roundings allowed, even a distance that is too small for a double counts.
        if (far < 0 || (work.roundings > 0 && far <= work.roundings)) continue;
        const u64 index = (offset + at) / work.element;
        if (index < sum.first) sum.first = index;
        if (bits_of(far) > sum.farthest) sum.farthest = bits_of(far);
        ++sum.count;
    }
}

__device__ bool lies_in(u64 value, const WordsWork& work)
{
    if (value < work.windows[0].from || value >= work.windows[work.count - 1].to) return false;
    u64 i = 0;
#pragma unroll 1
    while (value >= work.windows[i].to) ++i;
    return value >= work.windows[i].from;
}

} // namespace

extern "C" __global__ void warmgraph_disturb(const __grid_constant__ DisturbWork work)
{
    for (u64 at = first_block(); at < work.size; at += stride()) {
        const Block old = load_block(work.memory, at, work.size, work.alignment);
        store_block(work.memory, at, work.size, work.alignment, {disturbed(old.low, work), disturbed(old.high, work)});
    }
}

extern "C" __global__ void warmgraph_first_difference(const __grid_constant__ DifferenceWork work)
{
    for (u64 at = first_block(); at < work.size; at += stride()) {
        const Block a = load_block(work.a, at, work.size, work.alignment);
        const Block b = load_block(work.b, at, work.size, work.alignment);
        const Block difference{a.low ^ b.low, a.high ^ b.high};
        if ((difference.low | difference.high) == 0) continue;
        atomicMin(&work.tally->first, at + first_set(difference));
        return; // this thread's next blocks have larger offsets
    }
}

extern "C" __global__ void warmgraph_first_other(const __grid_constant__ OtherWork work)
{
    for (u64 at = first_block(); at < work.size; at += stride()) {
        const Block block = load_block(work.memory, at, work.size, work.alignment);
        const Block difference{block.low ^ work.pattern, block.high ^ work.pattern};
        if ((difference.low | difference.high) == 0) continue;
        const u64 found = at + first_set(difference);
        if (found >= work.size) continue; // a missing byte of the last block
        atomicMin(&work.tally->first, found);
        return;
    }
}

extern "C" __global__ void warmgraph_departure(const __grid_constant__ DepartureWork work)
{
    Tally sum;
    for (u64 at = first_block(); at < work.size; at += stride()) {
        const Block block = load_block(work.candidate, at, work.size, work.alignment);
        bool is_equal = false;
        for (u64 i = 0; i < work.count && !is_equal; ++i) {
            const Block other = load_block(work.others[i], at, work.size, work.alignment);
            is_equal = block.low == other.low && block.high == other.high;
        }
        if (!is_equal) add_departures(sum, block, at, work);
    }
    if (sum.count == 0) return;
    atomicMin(&work.tally->first, sum.first);
    atomicMax(&work.tally->farthest, sum.farthest);
    atomicAdd(&work.tally->count, sum.count);
}

/// Like add_words() of fingerprint.cpp in backends/api.
extern "C" __global__ void warmgraph_fingerprint(const __grid_constant__ FingerprintWork work)
{
    constexpr u64 k_low_key = 0x9E3779B97F4A7C15, k_high_key = 0xBB67AE8584CAA73B;
    u64 low = 0, high = 0;
    const auto add = [&](u64 word, u64 place) {
        low += mix(word ^ place * k_low_key);
        high += mix(word + place * k_high_key);
    };
    for (u64 at = first_block(); at < work.size; at += stride()) {
        const Block block = load_block(work.memory, at, work.size, work.alignment);
        add(block.low, at / 8 + 1);
        if (at + 8 < work.size) add(block.high, at / 8 + 2);
    }
    low = warp_sum(low);
    high = warp_sum(high);
    if (!is_leader()) return;
    atomicAdd(&work.tally->low, low);
    atomicAdd(&work.tally->high, high);
}

extern "C" __global__ void warmgraph_words_in(const __grid_constant__ WordsWork work)
{
    for (u64 at = work.begin + first_block(); at < work.end; at += stride()) {
        const Block block = load_block(work.memory, at, work.size, work.alignment);
        const u64 left = work.size - at, beyond = left > k_block ? left - k_block : 0;
        const u64 next = load_bytes(work.memory + at + k_block, beyond < 4 ? beyond : 4);
        const u64 words[4] = {block.low, block.low >> 32 | block.high << 32, block.high, block.high >> 32 | next << 32};
        for (u64 i = 0; i < 4; ++i) {
            if (4 * i + 8 > left || !lies_in(words[i], work)) continue;
            const u64 slot = atomicAdd(&work.tally->count, 1ULL);
            if (slot < work.room) work.words[slot] = {at + 4 * i, words[i]};
        }
    }
}

/// Never launched (warm_up.cpp). The first code that uses the driver's part of assert(), as kernels of Triton and
/// PyTorch do, makes the driver link it, and the first graph with such code prepares it.
extern "C" __global__ void warmgraph_warm_up(const __grid_constant__ WarmUpWork work)
{
    if (work.holds == 0) assert(false);
}
