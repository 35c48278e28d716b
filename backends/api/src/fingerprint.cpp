#include "fingerprint.hpp"

#include <algorithm>
#include <cstring>

namespace warmgraph::backends {
namespace {

// Odd numbers without a pattern: bits of the golden ratio and of the square root of three.
constexpr std::uint64_t k_low_key = 0x9E3779B97F4A7C15, k_high_key = 0xBB67AE8584CAA73B;

/// The final step of MurmurHash3: each input bit changes half of the output bits.
constexpr std::uint64_t mix(std::uint64_t x) noexcept
{
    x = (x ^ x >> 33U) * 0xFF51AFD7ED558CCD;
    x = (x ^ x >> 33U) * 0xC4CEB9FE1A85EC53;
    return x ^ x >> 33U;
}

} // namespace

void add_words(Fingerprint& sum, ByteView piece, std::uint64_t offset) noexcept
{
    std::uint64_t place = offset / 8;
    for (std::size_t at = 0; at < piece.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, piece.data() + at, std::min<std::size_t>(8, piece.size() - at));
        ++place;
        // Two sums combine a word with its place in different ways: a swap of words that one sum misses shows in the
        // other sum.
        sum.low += mix(word ^ place * k_low_key);
        sum.high += mix(word + place * k_high_key);
    }
}

Fingerprint BulkMemory::finish(const Fingerprint& sum, std::uint64_t size) noexcept
{
    return {mix(sum.low ^ size), mix(sum.high + mix(sum.low + size))};
}

} // namespace warmgraph::backends
