#include "warmgraph/capture/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace warmgraph {

namespace {

constexpr std::size_t k_exhaustive = 64; // ranges up to this many values are probed completely
constexpr std::size_t k_random_probes = 6;

template <class T>
std::uint64_t to_bits(T value) noexcept
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
T from_bits(std::uint64_t bits) noexcept
{
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// Calls f with a value of the scalar type's C++ type, made from the bits.
template <class F>
auto visit(DType type, std::uint64_t bits, F f)
{
    switch (type) {
    case DType::u32: return f(from_bits<std::uint32_t>(bits));
    case DType::i64: return f(from_bits<std::int64_t>(bits));
    case DType::u64: return f(from_bits<std::uint64_t>(bits));
    case DType::f32: return f(from_bits<float>(bits));
    case DType::f64: return f(from_bits<double>(bits));
    default: return f(from_bits<std::int32_t>(bits));
    }
}

template <class To, class From>
std::optional<std::uint64_t> convert_value(From value) noexcept
{
    if constexpr (std::is_floating_point_v<To>) {
        return to_bits(static_cast<To>(value));
    } else if constexpr (std::is_floating_point_v<From>) {
        return std::nullopt;
    } else {
        if (!std::in_range<To>(value)) return std::nullopt;
        return to_bits(static_cast<To>(value));
    }
}

template <class T>
ScalarRange whole_range() noexcept
{
    return {to_bits(std::numeric_limits<T>::lowest()), to_bits(std::numeric_limits<T>::max())}; // of finite ones
}

template <class T>
std::optional<std::uint64_t> bound(double value) noexcept
{
    if constexpr (std::is_floating_point_v<T>) {
        return to_bits(static_cast<T>(value));
    } else {
        // 2^63 and 2^64 are exact in double: anything at or above the limit does not fit.
        constexpr double k_limit = std::is_same_v<T, std::uint64_t> ? 18446744073709551616.0
                                   : std::is_same_v<T, std::int64_t>
                                       ? 9223372036854775808.0
                                       : static_cast<double>(std::numeric_limits<T>::max()) + 1;
        if (value != std::floor(value) || value < static_cast<double>(std::numeric_limits<T>::lowest()) ||
            value >= k_limit)
            return std::nullopt;
        return to_bits(static_cast<T>(value));
    }
}

template <class T>
std::vector<T> integer_probes(T low, T high)
{
    std::vector<T> values;
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    if (span < k_exhaustive) {
        for (std::uint64_t i = 0; i <= span; ++i) values.push_back(static_cast<T>(static_cast<std::uint64_t>(low) + i));
        return values;
    }
    values = {low, high, static_cast<T>(low + 1), static_cast<T>(high - 1),
              static_cast<T>(static_cast<std::uint64_t>(low) + span / 2)};
    std::mt19937_64 random{span}; // the same probes at every recording of one interface
    for (std::size_t i = 0; i < k_random_probes; ++i)
        values.push_back(static_cast<T>(static_cast<std::uint64_t>(low) + random() % span));
    return values;
}

template <class T>
std::vector<T> float_probes(T low, T high)
{
    std::vector<T> values{low, high, std::midpoint(low, high)};
    std::mt19937_64 random{1};
    for (std::size_t i = 0; i < k_random_probes; ++i) {
        const T t = std::uniform_real_distribution<T>{0, 1}(random);
        values.push_back(low * (1 - t) + high * t); // low + t * (high - low) overflows over the whole type
    }
    return values;
}

} // namespace

bool is_scalar_type(DType type) noexcept
{
    switch (type) {
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64:
    case DType::f32:
    case DType::f64: return true;
    default: return false;
    }
}

std::optional<std::uint64_t> convert(DType from, std::uint64_t bits, DType to) noexcept
{
    return visit(from, bits, [to](auto value) -> std::optional<std::uint64_t> {
        switch (to) {
        case DType::i32: return convert_value<std::int32_t>(value);
        case DType::u32: return convert_value<std::uint32_t>(value);
        case DType::i64: return convert_value<std::int64_t>(value);
        case DType::u64: return convert_value<std::uint64_t>(value);
        case DType::f32: return convert_value<float>(value);
        case DType::f64: return convert_value<double>(value);
        default: return std::nullopt;
        }
    });
}

std::string number_text(DType type, std::uint64_t bits)
{
    return visit(type, bits, [](auto value) { return fmt::format("{}", value); });
}

Result<ScalarRange> range_of(const NumberDecl& scalar)
{
    return visit(scalar.dtype, 0, [&]<class T>(T) -> Result<ScalarRange> {
        if (!scalar.range) return whole_range<T>();
        const auto low = bound<T>(scalar.range->first), high = bound<T>(scalar.range->second);
        if (!low || !high)
            return fail(ErrorCode::invalid_argument, "scalar '{}' has the range [{}, {}], which {} cannot hold",
                        scalar.name, scalar.range->first, scalar.range->second, to_string(scalar.dtype));
        return ScalarRange{*low, *high};
    });
}

bool in_range(DType type, std::uint64_t bits, const ScalarRange& range) noexcept
{
    return visit(type, bits, [&range]<class T>(T value) {
        return value >= from_bits<T>(range.low) && value <= from_bits<T>(range.high);
    });
}

std::vector<std::uint64_t> probe_values(DType type, const ScalarRange& range, std::uint64_t current)
{
    std::vector<std::uint64_t> result = visit(type, 0, [&range]<class T>(T) {
        std::vector<std::uint64_t> bits;
        const T low = from_bits<T>(range.low), high = from_bits<T>(range.high);
        if constexpr (std::is_floating_point_v<T>) {
            for (const T value : float_probes(low, high)) bits.push_back(to_bits(value));
        } else {
            for (const T value : integer_probes(low, high)) bits.push_back(to_bits(value));
        }
        return bits;
    });
    std::ranges::sort(result);
    const auto repeated = std::ranges::unique(result);
    result.erase(repeated.begin(), repeated.end());
    std::erase(result, current);
    return result;
}

} // namespace warmgraph
