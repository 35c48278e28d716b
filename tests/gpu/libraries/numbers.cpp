#include "numbers.hpp"

#include <bit>
#include <cmath>
#include <random>

namespace warmgraph::test::libraries {

namespace {

template <class T>
T read(std::span<const std::byte> bytes, std::size_t index)
{
    T value{};
    std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
    return value;
}

/// The bits of an element, written as an unsigned number.
std::string integer_at(std::span<const std::byte> bytes, std::size_t index, std::size_t size)
{
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + index * size, size);
    return std::to_string(value);
}

/// Converts bits to a float that has `exponent_bits` and `mantissa_bits`. Infinities and NaNs become large numbers;
/// equal bits become equal numbers.
double decode(std::uint32_t bits, int exponent_bits, int mantissa_bits)
{
    const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
    const std::uint32_t exponent = (bits >> mantissa_bits) & ((1U << exponent_bits) - 1);
    const bool is_negative = ((bits >> (mantissa_bits + exponent_bits)) & 1U) != 0;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double scale = std::ldexp(1.0, (exponent == 0 ? 1 : static_cast<int>(exponent)) - bias - mantissa_bits);
    const double value = scale * (mantissa + (exponent == 0 ? 0U : 1U << mantissa_bits));
    return is_negative ? -value : value;
}

double value_at(const Region& region, std::span<const std::byte> bytes, std::size_t index)
{
    if (region.reading == Reading::e4m3) return decode(read<std::uint8_t>(bytes, index), 4, 3);
    switch (region.dtype) {
    case DType::f64: return read<double>(bytes, index);
    case DType::f32: return read<float>(bytes, index);
    case DType::f16: return decode(read<std::uint16_t>(bytes, index), 5, 10);
    case DType::bf16: return std::bit_cast<float>(std::uint32_t{read<std::uint16_t>(bytes, index)} << 16);
    default: throw std::logic_error("an integer is compared by its bytes");
    }
}

/// The allowed relative difference; 0 means bitwise equal.
double tolerance_of(const Region& region)
{
    if (region.reading == Reading::e4m3) return 2e-2;
    switch (region.dtype) {
    case DType::f64: return 1e-7;
    case DType::f32: return 1e-4;
    case DType::f16:
    case DType::bf16: return 2e-2;
    default: return 0;
    }
}

bool is_near(double expected, double found, double tolerance)
{
    if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
    return expected == found || std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

std::string describe(const Region& region, std::size_t index, const std::string& expected, const std::string& found)
{
    return region.name + "[" + std::to_string(index) + "] is " + found + ", expected " + expected;
}

/// Converts to f16 without rounding. Values below f16's smallest normal number become 0.
std::uint16_t half_of(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const int exponent = static_cast<int>((bits >> 23) & 0xFFU) - 127 + 15;
    if (exponent <= 0) return 0;
    return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | (static_cast<unsigned>(exponent) << 10) |
                                      ((bits >> 13) & 0x3FFU));
}

void put(const Region& region, float value, std::uint32_t bits, std::byte* to)
{
    const auto store = [to](auto number) { std::memcpy(to, &number, sizeof number); };
    if (region.reading == Reading::e4m3)
        return store(static_cast<std::uint8_t>(bits & 0xBFU)); // a float below 2, and not a NaN
    switch (region.dtype) {
    case DType::f64: return store(static_cast<double>(value));
    case DType::f32: return store(value);
    case DType::f16: return store(half_of(value));
    case DType::bf16: return store(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
    default: {
        const auto number = static_cast<std::int64_t>(value * 1000.0F);
        std::memcpy(to, &number, size_of(region.dtype));
    }
    }
}

} // namespace

std::vector<std::byte> random_contents(const Region& region, std::uint32_t seed)
{
    std::mt19937 random{seed};
    const std::size_t size = size_of(region.dtype);
    std::vector<std::byte> bytes(static_cast<std::size_t>(region.count) * size);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
        const auto bits = static_cast<std::uint32_t>(random());
        put(region, static_cast<float>(bits >> 8) / static_cast<float>(1U << 23) - 1.0F, bits, bytes.data() + at);
    }
    return bytes;
}

std::optional<std::string> difference(const Region& region, std::span<const std::byte> expected,
                                      std::span<const std::byte> found)
{
    if (expected.size() != found.size()) return region.name + " has another size";
    const double tolerance = tolerance_of(region);
    const std::size_t size = size_of(region.dtype);
    for (std::size_t i = 0; i < expected.size() / size; ++i) {
        if (std::memcmp(expected.data() + i * size, found.data() + i * size, size) == 0) continue;
        if (tolerance == 0) return describe(region, i, integer_at(expected, i, size), integer_at(found, i, size));
        const double wanted = value_at(region, expected, i), is = value_at(region, found, i);
        if (!is_near(wanted, is, tolerance)) return describe(region, i, std::to_string(wanted), std::to_string(is));
    }
    return std::nullopt;
}

} // namespace warmgraph::test::libraries
