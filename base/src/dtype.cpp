#include "warmgraph/base/dtype.hpp"

#include <array>

namespace warmgraph {
namespace {

// Indexed by the stored value.
constexpr std::array<std::string_view, k_dtype_count> k_names{"u8",  "i8",  "u16",  "i16", "u32", "i32", "u64",
                                                              "i64", "f16", "bf16", "f32", "f64", "bool"};

} // namespace

std::string_view to_string(DType type) noexcept
{
    const auto index = static_cast<std::size_t>(type);
    return index < k_names.size() ? k_names[index] : "unknown";
}

std::optional<DType> parse_dtype(std::string_view text) noexcept
{
    for (std::size_t i = 0; i < k_names.size(); ++i) {
        if (k_names[i] == text) return static_cast<DType>(i);
    }
    return std::nullopt;
}

} // namespace warmgraph
