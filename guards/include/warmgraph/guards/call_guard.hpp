// The guards of every call: compares its tensors and values with the recorded ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

/// One tensor of a call. `base` and `offset` are its address: two tensors can only overlap within one base.
struct TensorArg {
    std::uint64_t base = 0;   ///< the allocation (Address::base)
    std::uint64_t offset = 0; ///< bytes
    DType dtype = DType::u8;
    std::uint8_t rank = 0;
    std::uint16_t device = 0;                                 ///< ordinal within the backend
    std::array<std::int64_t, cachefmt::k_max_rank> sizes{};   ///< only [0, rank) is used
    std::array<std::int64_t, cachefmt::k_max_rank> strides{}; ///< elements
};

/// Bytes from the first to one past the last element (0 if any size is 0). Negative strides are not supported (callers
/// that refuse them first get the extent of the absolute values).
[[nodiscard]] std::uint64_t extent_bytes(const TensorArg& tensor) noexcept;

/// Largest power of two up to k_max_alignment that divides the offset (bases are aligned to at least that).
[[nodiscard]] std::uint32_t alignment_class(std::uint64_t offset) noexcept;

/// For each tensor the index of the first tensor that its bytes overlap (transitively), or its own index. O(n log n).
/// Tensors of extent 0 overlap nothing.
[[nodiscard]] std::vector<std::uint32_t> alias_groups(std::span<const TensorArg> tensors);

/// Returns the specs of a call, for a recording or evaluate(). `names`: one per tensor. `device_prefix`: "opencl:".
[[nodiscard]] std::vector<TensorSpec> describe(std::span<const TensorArg> tensors, std::span<const std::string> names,
                                               const std::string& device_prefix);

/// Adds to the specs of overlapping tensors the distance from the first tensor of their group (TensorSpec::distance).
void guard_distances(std::span<TensorSpec> specs, std::span<const TensorArg> tensors);
/// Removes the distances: any distance at which the same tensors overlap is then accepted.
void forget_distances(std::span<TensorSpec> specs) noexcept;

/// Which of a call's tensors may differ from another call's: only those in `given` (indices, in the call's order),
/// among calls with the same number and the same `given`. Number 0: nothing is known.
struct Others {
    std::uint64_t number = 0;
    std::span<const std::size_t> given;
};

/// Checks a call against recorded specs. Built once per loaded entry; `matches` then allocates nothing.
/// Remembers the alias and alignment verdict of the last accepted addresses, so that a call with unchanged addresses
/// costs one comparison (target: 64 tensors in 200 ns). A call's alignment may be stronger than the recorded one, never
/// weaker. Not thread-safe: one per exec, used under its lock.
class CallGuard {
public:
    /// `device`: the ordinal that tensors must be on if a recorded spec's device ("opencl:0") names none.
    CallGuard(std::span<const TensorSpec> recorded, std::span<const ValueSpec> values, std::uint16_t device);

    /// `values`: bits in declaration order. `others` shows which tensors did not change; these are skipped.
    [[nodiscard]] bool matches(std::span<const TensorArg> tensors, std::span<const std::uint64_t> values,
                               const Others& others = {}) noexcept;

    /// Whether the last accepted call had other addresses than the one before it. (Set by matches.)
    [[nodiscard]] bool moved() const noexcept { return m_moved; }

private:
    [[nodiscard]] bool accepts_places(std::span<const TensorArg> tensors) noexcept;
    [[nodiscard]] bool accepted_all_but(const Others& others) const noexcept;
    void note_accepted(const Others& others) noexcept;

    std::vector<TensorArg> m_expected; ///< the recorded tensors at the last accepted addresses, zero beyond the rank
    std::vector<std::uint32_t> m_alignment;
    std::vector<std::uint32_t> m_alias_groups;
    std::vector<std::pair<std::uint32_t, std::int64_t>> m_distances; ///< tensor, distance from its group's first
    std::vector<std::uint64_t> m_values;
    std::vector<std::uint32_t> m_order, m_groups; ///< scratch
    std::uint64_t m_number = 0;                   ///< Others of the last accepted call
    std::vector<std::size_t> m_given;
    bool m_satisfiable = true; ///< false: no TensorArg can look like the recorded specs
    bool m_has_last = false;
    bool m_moved = true;
};

} // namespace warmgraph::guards
