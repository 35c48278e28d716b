// Guards in their stored form. guards/ defines their meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/dtype.hpp"

namespace warmgraph::cachefmt {

enum class Role : std::uint8_t {
    must_match = 0, ///< a difference is a miss with a reason
    identity = 1,   ///< part of the key
    advisory = 2,   ///< recorded and shown, never compared
};

/// One named fact. If its probe failed, the value is k_unknown, which matches nothing, not even itself.
struct Fact {
    std::string name; ///< dotted, e.g. "driver.version", "config.dtype", "env.OMP_NUM_THREADS"
    std::string value;
    Role role = Role::must_match;
    bool operator==(const Fact&) const = default;
};
inline constexpr const char* k_unknown = "\x01unknown";

/// Returns "must_match", "identity" or "advisory".
[[nodiscard]] std::string_view to_string(Role role) noexcept;
/// A fact's value for people: "unknown" for k_unknown, other values made printable.
[[nodiscard]] std::string fact_text(std::string_view value);

/// The required properties of a call's tensor. `name` is its region's name.
struct TensorSpec {
    std::string name;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes;   ///< elements; their number is the rank, at most k_max_rank
    std::vector<std::int64_t> strides; ///< elements, same length as sizes
    std::string device;                ///< "opencl:0"
    std::uint32_t alignment = 1;       ///< power of two, 1..256, that divided the recorded address
    std::uint32_t alias_group = 0;     ///< index of the first tensor that overlaps this tensor; else its own index
    /// Bytes from the start of that first tensor to the start of this tensor. Set if the recorded work depends on how
    /// tensors overlap; if empty, tensors may overlap at any distance.
    std::optional<std::int64_t> distance{};
    bool operator==(const TensorSpec&) const = default;
};
inline constexpr std::size_t k_max_rank = 8;
inline constexpr std::uint32_t k_max_alignment = 256;

/// A host value for which the variant is specialised.
struct ValueSpec {
    std::string name;
    DType dtype = DType::i64;
    std::uint64_t bits = 0; ///< the value's bytes, zero-extended
    bool operator==(const ValueSpec&) const = default;
};

/// All guards of an entry. `facts` are sorted by name and unique; tensors and values are in declaration order.
struct Guards {
    std::vector<Fact> facts;
    std::vector<TensorSpec> tensors;
    std::vector<ValueSpec> values;
    bool operator==(const Guards&) const = default;
};

} // namespace warmgraph::cachefmt
