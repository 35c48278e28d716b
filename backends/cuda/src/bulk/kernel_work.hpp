// Parameters of the kernels in kernels.cu. Each kernel takes one of these structures by value. Host and device have the
// same layout, because all fields have 8 bytes. Compiles as C++17 (nvcc).
#pragma once

namespace warmgraph::backends::cuda::bulk {

using u64 = unsigned long long; // the type of atomic functions
using Byte = unsigned char;

constexpr unsigned k_others = 8;
constexpr unsigned k_windows = 64;

/// The joint result of a launch's threads, in device memory. The host initialises it and reads it afterwards.
struct Tally {
    u64 first = ~0ULL; ///< the smallest offset or index; all ones if none
    u64 count = 0;
    u64 farthest = 0; ///< the bits of a double >= 0, which sort like the numbers
    u64 low = 0, high = 0;
};

/// In all structures, `alignment` is the largest power of two up to 16 that divides all the addresses.
struct DisturbWork {
    Byte* memory = nullptr;
    u64 size = 0, alignment = 1;
    u64 element = 1; ///< bytes
    u64 ones = 0;    ///< an 8-byte word with a 1 in each element's first byte
    u64 is_real = 0; ///< 1 for floating point
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
    u64 count = 0; ///< number of others
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

/// Searches words that begin in [begin, end), multiples of 16, in `size` bytes of memory.
struct WordsWork {
    const Byte* memory = nullptr;
    u64 size = 0, alignment = 1;
    u64 begin = 0, end = 0;
    Window windows[k_windows] = {}; ///< sorted by address, with gaps between them
    u64 count = 0;                  ///< number of windows, at least 1
    Tally* tally = nullptr;
    Word* words = nullptr; ///< unordered
    u64 room = 0;          ///< size of `words`; further words are only counted
};

struct WarmUpWork {
    u64 holds = 1;
};

} // namespace warmgraph::backends::cuda::bulk
