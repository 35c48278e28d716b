// Guards as they are stored. What they mean is in guards/.
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

/// One named fact. A probe that failed gives k_unknown, which never matches anything, not even itself.
struct Fact {
    std::string name; ///< dotted, e.g. "driver.version", "config.dtype", "env.OMP_NUM_THREADS"
    std::string value;
    Role role = Role::must_match;
    bool operator==(const Fact&) const = default;
};
inline constexpr const char* k_unknown = "\x01unknown";

/// "must_match", "identity", "advisory".
[[nodiscard]] std::string_view to_string(Role role) noexcept;
/// A fact's value as people read it: k_unknown as "unknown", the rest made printable.
[[nodiscard]] std::string fact_text(std::string_view value);

/// What a call's tensor must look like. `name` is the region's.
struct TensorSpec {
    std::string name;
    DType dtype = DType::u8;
    std::vector<std::int64_t> sizes;   ///< elements; rank is its length, at most k_max_rank
    std::vector<std::int64_t> strides; ///< elements, same length as sizes
    std::string device;                ///< "opencl:0"
    std::uint32_t alignment = 1;       ///< alignment class: power of two, 1..256, that the address had
    std::uint32_t alias_group = 0;     ///< index of the first tensor whose bytes overlap this one's (own index if none)
    /// Bytes from the start of that first tensor to this one's. Recorded where the function asks how its overlapping
    /// tensors lie; without it any distance at which they overlap will do.
    std::optional<std::int64_t> distance{};
    bool operator==(const TensorSpec&) const = default;
};
inline constexpr std::size_t k_max_rank = 8;
inline constexpr std::uint32_t k_max_alignment = 256;

/// A host value that a variant is specialised on.
struct ValueSpec {
    std::string name;
    DType dtype = DType::i64;
    std::uint64_t bits = 0; ///< the value's bytes, zero-extended
    bool operator==(const ValueSpec&) const = default;
};

/// All guards of an entry. `facts` sorted by name and unique; tensors and values in declaration order.
struct Guards {
    std::vector<Fact> facts;
    std::vector<TensorSpec> tensors;
    std::vector<ValueSpec> values;
    bool operator==(const Guards&) const = default;
};

} // namespace warmgraph::cachefmt
