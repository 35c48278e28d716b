// A plain, slow reference for BulkMemory's operations on the host's bytes. It uses another method than the product on
// purpose: the size of one rounding is the distance from a number to the next larger one.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::backends::test {

inline bool is_real(DType type)
{
    return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64;
}

inline std::uint64_t element_bits(const Bytes& bytes, std::size_t index, DType type)
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + index * size_of(type), size_of(type));
    return bits;
}

inline void set_element(Bytes& bytes, std::size_t index, DType type, std::uint64_t bits)
{
    std::memcpy(bytes.data() + index * size_of(type), &bits, size_of(type));
}

/// Returns the number of exponent bits and the number of fraction bits.
inline std::pair<int, int> form_of(DType type)
{
    switch (type) {
    case DType::f16: return {5, 10};
    case DType::bf16: return {8, 7};
    case DType::f32: return {8, 23};
    default: return {11, 52};
    }
}

inline std::uint64_t infinity_bits(DType type)
{
    const auto [exponent, fraction] = form_of(type);
    return ((std::uint64_t{1} << exponent) - 1) << fraction;
}

inline std::uint64_t sign_bit(DType type) { return std::uint64_t{1} << (8 * size_of(type) - 1); }

inline long double real_value(DType type, std::uint64_t bits)
{
    const auto [exponent_bits, fraction_bits] = form_of(type);
    const std::uint64_t magnitude = bits & ~sign_bit(type);
    const long double sign = (bits & sign_bit(type)) != 0 ? -1 : 1;
    if (magnitude > infinity_bits(type)) return std::numeric_limits<long double>::quiet_NaN();
    if (magnitude == infinity_bits(type)) return sign * std::numeric_limits<long double>::infinity();
    const auto exponent = static_cast<int>(magnitude >> fraction_bits);
    const std::uint64_t fraction = magnitude & ((std::uint64_t{1} << fraction_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent == 0) return sign * std::ldexp(static_cast<long double>(fraction), 1 - bias - fraction_bits);
    return sign * std::ldexp(static_cast<long double>(fraction | std::uint64_t{1} << fraction_bits),
                             exponent - bias - fraction_bits);
}

/// One rounding: the distance from a finite number to the next larger number.
inline long double one_rounding(DType type, std::uint64_t magnitude)
{
    if (magnitude + 1 == infinity_bits(type)) return real_value(type, magnitude) - real_value(type, magnitude - 1);
    return real_value(type, magnitude + 1) - real_value(type, magnitude);
}

/// The distance of `candidate` to the envelope of `others`, in roundings. Returns nullopt when the candidate is inside.
inline std::optional<double> real_departure(DType type, std::uint64_t candidate,
                                            const std::vector<std::uint64_t>& others)
{
    constexpr auto k_infinity = std::numeric_limits<double>::infinity();
    const long double value = real_value(type, candidate);
    std::vector<long double> numbers;
    std::uint64_t largest = 0; // the magnitude of the largest finite bound of the envelope
    for (const std::uint64_t bits : others)
        if (const long double number = real_value(type, bits); !std::isnan(number)) numbers.push_back(number);
    if (std::isnan(value)) return numbers.size() < others.size() ? std::nullopt : std::optional(k_infinity);
    if (numbers.empty()) return k_infinity;
    const auto [low, high] = std::ranges::minmax(numbers);
    if (low <= value && value <= high) return std::nullopt;
    for (const std::uint64_t bits : others) {
        const long double number = real_value(type, bits);
        if (std::isfinite(number) && (number == low || number == high))
            largest = std::max(largest, bits & ~sign_bit(type));
    }
    const long double distance = value > high ? value - high : low - value;
    if (!std::isfinite(distance)) return k_infinity;
    return static_cast<double>(distance / one_rounding(type, largest));
}

inline Departure reference_departure(const Bytes& candidate, const std::vector<Bytes>& others, DType type,
                                     double roundings)
{
    Departure result;
    for (std::size_t i = 0; i < candidate.size() / size_of(type); ++i) {
        const std::uint64_t own = element_bits(candidate, i, type);
        std::vector<std::uint64_t> theirs;
        for (const Bytes& other : others) theirs.push_back(element_bits(other, i, type));
        std::optional<double> far;
        if (is_real(type))
            far = real_departure(type, own, theirs);
        else if (std::ranges::find(theirs, own) == theirs.end())
            far = std::numeric_limits<double>::infinity();
        if (!far || (roundings > 0 && *far <= roundings)) continue;
        if (result.count++ == 0) result.first = i;
        result.farthest = std::max(result.farthest, *far);
    }
    return result;
}

inline BulkMemory::AddressMatches reference_words(const Bytes& memory, const std::vector<AddressWindow>& windows,
                                                  std::size_t most)
{
    BulkMemory::AddressMatches found;
    for (std::size_t at = 0; at + 8 <= memory.size(); at += 4) {
        const auto value = load<std::uint64_t>(memory, at);
        const auto holds = [&](const AddressWindow& window) { return window.from <= value && value < window.to; };
        if (std::ranges::none_of(windows, holds)) continue;
        ++found.total;
        if (found.words.size() < most) found.words.push_back({at, value});
    }
    return found;
}

/// Makes random contents from a seed.
class BulkContents {
public:
    explicit BulkContents(std::uint64_t seed) : m_engine(seed) {}

    std::uint64_t below(std::uint64_t end)
    {
        return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(m_engine);
    }
    Bytes bytes(std::size_t size)
    {
        Bytes result(size);
        for (std::byte& one : result) one = static_cast<std::byte>(below(256));
        return result;
    }
    /// Random bits. Often they are a number at which arithmetic goes wrong, or a number next to it.
    std::uint64_t bits(DType type)
    {
        const std::uint64_t any = std::uniform_int_distribution<std::uint64_t>()(m_engine) & mask(type);
        if (!is_real(type)) return below(2) == 0 ? any : any % 4;
        const std::uint64_t infinity = infinity_bits(type), smallest = std::uint64_t{1} << form_of(type).second;
        const std::vector<std::uint64_t> special{0,
                                                 1,
                                                 smallest - 1,
                                                 smallest,
                                                 smallest + 1,
                                                 infinity,
                                                 infinity,
                                                 infinity + 1,
                                                 infinity - 1,
                                                 infinity / 2,
                                                 infinity / 2 + 1};
        if (below(3) == 0) return any;
        return special[below(special.size())] | (below(2) == 0 ? sign_bit(type) : 0);
    }
    /// A number that is at most three steps away from `bits`.
    std::uint64_t near(DType type, std::uint64_t bits) { return (bits + below(7) - 3) & mask(type); }

private:
    static std::uint64_t mask(DType type) { return sign_bit(type) | (sign_bit(type) - 1); }
    std::mt19937_64 m_engine;
};

} // namespace warmgraph::backends::test
