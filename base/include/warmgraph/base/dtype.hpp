// Public, C++20. Element types, named as in PyTorch's short forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "warmgraph/export.hpp"

namespace warmgraph {

/// The values are stored: they are explicit, and new ones are only appended.
enum class DType : std::uint8_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    u64 = 6,
    i64 = 7,
    f16 = 8,
    bf16 = 9,
    f32 = 10,
    f64 = 11,
    boolean = 12,
};
inline constexpr std::uint8_t k_dtype_count = 13;

inline constexpr DType u8 = DType::u8, i8 = DType::i8, u16 = DType::u16, i16 = DType::i16, u32 = DType::u32,
                       i32 = DType::i32, u64 = DType::u64, i64 = DType::i64, f16 = DType::f16, bf16 = DType::bf16,
                       f32 = DType::f32, f64 = DType::f64;

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType type) noexcept
{
    switch (type) {
    case DType::u8:
    case DType::i8:
    case DType::boolean: return 1;
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16: return 2;
    case DType::u32:
    case DType::i32:
    case DType::f32: return 4;
    case DType::u64:
    case DType::i64:
    case DType::f64: return 8;
    }
    return 0;
}

/// The short name, e.g. "f32".
[[nodiscard]] WARMGRAPH_API std::string_view to_string(DType type) noexcept;
[[nodiscard]] WARMGRAPH_API std::optional<DType> parse_dtype(std::string_view text) noexcept;

} // namespace warmgraph
