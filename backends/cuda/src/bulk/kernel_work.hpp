// What the host gives to the kernels of kernels.cu: each takes one of these, by value. The layout is the same on both sides:
// 8-byte fields only. Compiles as C++17 (nvcc).
#pragma once

namespace warmgraph::backends::cuda::bulk {

using u64 = unsigned long long; // what atomics take
using Byte = unsigned char;

constexpr unsigned k_others = 8;
constexpr unsigned k_windows = 64;

/// What the threads of a launch find together. In device memory; the host sets it before and reads it after.
struct Tally {
    u64 first = ~0ULL; ///< the smallest offset or index; all ones: none
    u64 count = 0;
    u64 farthest = 0; ///< the bits of a double that is not negative: in the order of the numbers
    u64 low = 0, high = 0;
};

/// Of every operand: `alignment` is the largest power of two up to 16 that divides all its addresses.
struct DisturbWork {
    Byte* memory = nullptr;
    u64 size = 0, alignment = 1;
    u64 element = 1; ///< bytes
    u64 ones = 0;    ///< a 1 in each element's first byte, over 8 bytes
    u64 is_real = 0; ///< floating point
};

struct DifferenceWork {
    const Byte *a = nullptr, *b = nullptr;
    u64 size = 0, alignment = 1;
    Tally* tally = nullptr;
};

struct OtherWork {
    const Byte* memory = nullptr;
    u64 size = 0, alignment = 1;
    u64 pattern = 0; ///< the byte, eight times
    Tally* tally = nullptr;
};

enum class Numbers : u64 { whole, f16, bf16, f32, f64 };

struct DepartureWork {
    const Byte* candidate = nullptr;
    const Byte* others[k_others] = {};
    u64 count = 0; ///< of the others
    u64 size = 0, alignment = 1;
    u64 element = 1; ///< bytes
    Numbers numbers = Numbers::whole;
    double roundings = 0;
    Tally* tally = nullptr;
};

struct FingerprintWork {
    const Byte* memory = nullptr;
    u64 size = 0, alignment = 1;
    Tally* tally = nullptr;
};

struct Window {
    u64 from, to;
};

struct Word {
    u64 offset, value;
};

/// Words that begin in [begin, end), multiples of 16, of `size` bytes of memory.
struct WordsWork {
    const Byte* memory = nullptr;
    u64 size = 0, alignment = 1;
    u64 begin = 0, end = 0;
    Window windows[k_windows] = {}; ///< by address, apart from each other
    u64 count = 0;                  ///< of the windows, 1 at least
    Tally* tally = nullptr;
    Word* words = nullptr; ///< in no order
    u64 room = 0;          ///< of `words`; what is beyond is counted only
};

struct WarmUpWork {
    u64 holds = 1;
};

} // namespace warmgraph::backends::cuda::bulk
