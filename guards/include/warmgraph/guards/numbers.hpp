// Host numbers as type and bits: declarations, conversion, and ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "warmgraph/base/dtype.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

/// A host number: a scalar that a graph follows, or a value that the graph is specialised for.
struct NumberDecl {
    std::string name;
    DType dtype = DType::i64;
    std::optional<std::pair<double, double>> range{}; ///< both bounds are included; only for scalars
};

/// Inclusive bounds of a scalar, as bits of its type. Without a declared range, the bounds are those of the whole type.
struct ScalarRange {
    std::uint64_t low = 0, high = 0;
};

[[nodiscard]] bool is_scalar_type(DType type) noexcept;
/// Returns a mask of the bits that a number of this many bytes (4 or 8) has in a word.
[[nodiscard]] constexpr std::uint64_t bits_of_width(std::size_t width) noexcept
{
    return width == 8 ? ~0ULL : 0xFFFF'FFFFULL;
}
/// Whether the type is a floating-point type, of any width.
[[nodiscard]] bool is_real(DType type) noexcept;

/// Converts a number of type `from` to the bits of `to`; nullopt if that type cannot hold it. Integers must fit, f64
/// rounds to f32, integers become floats, floats never become integers.
[[nodiscard]] std::optional<std::uint64_t> convert(DType from, std::uint64_t bits, DType to) noexcept;

[[nodiscard]] std::string number_text(DType type, std::uint64_t bits);

/// Returns the declared range as bits, or the range of the whole type. invalid_argument: the type cannot hold a bound
/// of the range.
[[nodiscard]] Result<ScalarRange> range_of(const NumberDecl& scalar);
[[nodiscard]] bool in_range(DType type, std::uint64_t bits, const ScalarRange& range) noexcept;

} // namespace warmgraph
