#include "departure.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace warmgraph::backends {
namespace {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

/// The format of a floating-point type.
struct Format {
    int fraction_bits;     ///< bits of the fraction, without the implicit bit
    int smallest_exponent; ///< smallest exponent e of normal numbers 2^e
};

/// Decodes IEEE 754 binary16: C++23's own type for it is missing in the compilers that we support.
double half_value(std::uint16_t bits) noexcept
{
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023, sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31) return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * k_infinity;
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

struct Half {
    using Bits = std::uint16_t;
    static constexpr Format format{10, -14};
    static double value(Bits bits) noexcept { return half_value(bits); }
};

struct BrainHalf {
    using Bits = std::uint16_t;
    static constexpr Format format{7, -126};
    static double value(Bits bits) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }
};

struct Single {
    using Bits = std::uint32_t;
    static constexpr Format format{23, -126};
    static double value(Bits bits) noexcept { return std::bit_cast<float>(bits); }
};

struct Double {
    using Bits = std::uint64_t;
    static constexpr Format format{52, -1022};
    static double value(Bits bits) noexcept { return std::bit_cast<double>(bits); }
};

/// Integers. Two different integers are never close to each other.
template <class Word>
struct Whole {
    using Bits = Word;
};

/// The range of the other values, NaN excluded; low > high while it is empty.
struct Envelope {
    double low = k_infinity, high = -k_infinity;
    bool has_nan = false;

    void add(double value) noexcept
    {
        if (std::isnan(value)) {
            has_nan = true;
            return;
        }
        low = std::min(low, value);
        high = std::max(high, value);
    }
    [[nodiscard]] bool holds(double value) const noexcept
    {
        return std::isnan(value) ? has_nan : low <= value && value <= high;
    }
    /// Returns e, where one rounding (the distance of neighbouring numbers) is 2^e.
    [[nodiscard]] int rounding(const Format& format) const noexcept
    {
        double magnitude = 0;
        for (const double bound : {low, high})
            if (std::isfinite(bound)) magnitude = std::max(magnitude, std::abs(bound));
        const int exponent = magnitude > 0 ? std::ilogb(magnitude) : format.smallest_exponent;
        return std::max(exponent, format.smallest_exponent) - format.fraction_bits;
    }
    /// Returns a value's distance in roundings. Scales before subtracting, because a difference may overflow.
    [[nodiscard]] double distance(double value, const Format& format) const noexcept
    {
        if (std::isnan(value) || low > high) return k_infinity;
        const double bound = value > high ? high : low;
        if (!std::isfinite(value) || !std::isfinite(bound)) return k_infinity;
        const int exponent = rounding(format);
        return std::abs(std::scalbn(value, -exponent) - std::scalbn(bound, -exponent));
    }
};

/// Returns how far the candidate lies outside the envelope of `others`; nullopt if it lies inside.
template <class Type>
std::optional<double> departure_of(typename Type::Bits candidate, std::span<const ByteView> others, std::size_t at)
{
    if constexpr (requires { Type::format; }) {
        Envelope envelope;
        for (const ByteView& other : others) envelope.add(Type::value(load<typename Type::Bits>(other, at)));
        const double value = Type::value(candidate);
        if (envelope.holds(value)) return std::nullopt;
        return envelope.distance(value, Type::format);
    }
    return k_infinity;
}

template <class Type>
void add_all(Departure& sum, ByteView candidate, std::span<const ByteView> others, std::uint64_t first,
             double roundings)
{
    using Bits = typename Type::Bits;
    for (std::size_t at = 0; at < candidate.size(); at += sizeof(Bits)) {
        const Bits bits = load<Bits>(candidate, at);
        // The usual case: an equal value needs no arithmetic.
        if (std::ranges::any_of(others, [&](const ByteView& other) { return load<Bits>(other, at) == bits; })) continue;
        const std::optional<double> far = departure_of<Type>(bits, others, at);
        // With 0 roundings allowed, even a distance that is too small for a double counts.
        if (!far || (roundings > 0 && *far <= roundings)) continue;
        if (sum.count++ == 0) sum.first = first + at / sizeof(Bits);
        sum.farthest = std::max(sum.farthest, *far);
    }
}

} // namespace

void add_departures(Departure& sum, ByteView candidate, std::span<const ByteView> others, DType dtype,
                    std::uint64_t first, double roundings)
{
    if (std::ranges::any_of(others, [&](const ByteView& other) { return std::ranges::equal(other, candidate); }))
        return;
    switch (dtype) {
    case DType::f16: return add_all<Half>(sum, candidate, others, first, roundings);
    case DType::bf16: return add_all<BrainHalf>(sum, candidate, others, first, roundings);
    case DType::f32: return add_all<Single>(sum, candidate, others, first, roundings);
    case DType::f64: return add_all<Double>(sum, candidate, others, first, roundings);
    default: break;
    }
    switch (size_of(dtype)) {
    case 1: return add_all<Whole<std::uint8_t>>(sum, candidate, others, first, roundings);
    case 2: return add_all<Whole<std::uint16_t>>(sum, candidate, others, first, roundings);
    case 4: return add_all<Whole<std::uint32_t>>(sum, candidate, others, first, roundings);
    default: return add_all<Whole<std::uint64_t>>(sum, candidate, others, first, roundings);
    }
}

} // namespace warmgraph::backends
