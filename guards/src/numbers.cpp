#include "warmgraph/guards/numbers.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "warmgraph/guards/number_bits.hpp"

namespace warmgraph {

namespace {

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
    // The infinities are excluded.
    return {to_bits(std::numeric_limits<T>::lowest()), to_bits(std::numeric_limits<T>::max())};
}

template <class T>
std::optional<std::uint64_t> bound(double value) noexcept
{
    if constexpr (std::is_floating_point_v<T>) {
        return to_bits(static_cast<T>(value));
    } else {
        // 2^63 and 2^64 are exact in double; a value that is not below the limit does not fit into T.
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

bool is_real(DType type) noexcept
{
    return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64;
}

std::optional<std::uint64_t> convert(DType from, std::uint64_t bits, DType to) noexcept
{
    return visit_number(from, bits, [to](auto value) -> std::optional<std::uint64_t> {
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
    return visit_number(type, bits, [](auto value) { return fmt::format("{}", value); });
}

Result<ScalarRange> range_of(const NumberDecl& scalar)
{
    return visit_number(scalar.dtype, 0, [&]<class T>(T) -> Result<ScalarRange> {
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
    return visit_number(type, bits, [&range]<class T>(T value) {
        return value >= from_bits<T>(range.low) && value <= from_bits<T>(range.high);
    });
}

} // namespace warmgraph
