// Conversion between the numbers of a scalar's type and their bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "warmgraph/base/dtype.hpp"

namespace warmgraph {

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
auto visit_number(DType type, std::uint64_t bits, F f)
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

} // namespace warmgraph
