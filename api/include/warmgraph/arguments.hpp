// The arguments of a call: memory, tensors and numbers, by name.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "warmgraph/base/dtype.hpp"
#include "warmgraph/device.hpp"

namespace warmgraph {

/// A tensor argument that differs from its declaration. Sizes and strides are in elements; empty strides mean
/// contiguous.
struct Tensor {
    MemoryRef memory;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
};

/// A number argument: a scalar or a value of the function.
struct Number {
    DType dtype = DType::i32;
    std::uint64_t bits = 0; ///< the value's bytes, zero-extended
    template <class T>
        requires std::is_arithmetic_v<T>
    static Number of(T value) noexcept
    {
        Number number;
        if constexpr (std::is_same_v<T, float>)
            number.dtype = DType::f32;
        else if constexpr (std::is_floating_point_v<T>)
            number.dtype = DType::f64;
        else if constexpr (sizeof(T) == 8)
            number.dtype = std::is_signed_v<T> ? DType::i64 : DType::u64;
        else
            number.dtype = std::is_signed_v<T> ? DType::i32 : DType::u32;
        if constexpr (sizeof(T) < 4) {
            const auto wide = static_cast<std::int32_t>(value);
            std::memcpy(&number.bits, &wide, sizeof wide);
        } else {
            std::memcpy(&number.bits, &value, sizeof value);
        }
        return number;
    }
};

/// One named argument: `{"token", buffer}`, `{"token", Tensor{...}}`, `{"position", 17}`.
struct Arg {
    std::string_view name; ///< must outlive the call
    std::variant<MemoryRef, Tensor, Number> value;

    Arg(std::string_view n, const MemoryRef& memory) : name(n), value(memory) {}
    Arg(std::string_view n, const Buffer& buffer) : name(n), value(buffer.memory()) {}
    Arg(std::string_view n, Tensor tensor) : name(n), value(std::move(tensor)) {}
    template <class T>
        requires std::is_arithmetic_v<T>
    Arg(std::string_view n, T number) : name(n), value(Number::of(number))
    {
    }
};

} // namespace warmgraph
