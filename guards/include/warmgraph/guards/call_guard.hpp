// The guards of every call: the tensors and values that it was handed against those that were recorded.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

/// One tensor of a call. `base` and `offset` give its place: two tensors can only overlap within one base.
struct TensorArg {
    std::uint64_t base = 0;   ///< the allocation (Address::base)
    std::uint64_t offset = 0; ///< bytes
    DType dtype = DType::u8;
    std::uint8_t rank = 0;
    std::uint16_t device = 0;                                 ///< ordinal within the backend
    std::array<std::int64_t, cachefmt::k_max_rank> sizes{};   ///< only [0, rank) is looked at
    std::array<std::int64_t, cachefmt::k_max_rank> strides{}; ///< elements
};

/// Bytes from the first to one past the last element (0 when any size is 0). Negative strides are not supported
/// (extent is then computed from the absolute value by callers that refuse them first).
[[nodiscard]] std::uint64_t extent_bytes(const TensorArg& tensor) noexcept;

/// Largest power of two up to k_max_alignment that divides the offset (bases are aligned to at least that).
[[nodiscard]] std::uint32_t alignment_class(std::uint64_t offset) noexcept;

/// For each tensor the index of the first one that its bytes overlap (transitively); itself when alone.
/// O(n log n). Tensors of extent 0 overlap nothing.
[[nodiscard]] std::vector<std::uint32_t> alias_groups(std::span<const TensorArg> tensors);

/// Specs of a call, for a recording or for evaluate(). `names` has one for each tensor; `device_prefix` e.g. "opencl:".
[[nodiscard]] std::vector<TensorSpec> describe(std::span<const TensorArg> tensors, std::span<const std::string> names,
                                               const std::string& device_prefix);

/// Gives the specs of tensors that overlap their distances from the first of their group (TensorSpec::distance).
void guard_distances(std::span<TensorSpec> specs, std::span<const TensorArg> tensors);
/// Without them: any distance at which the same tensors overlap will do.
void forget_distances(std::span<TensorSpec> specs) noexcept;

/// What is known of a call's tensors beside another call's: all but those in `given` (indices, in the order in which
/// the call has them) are as in every call with the same number and the same `given`. Number 0: nothing is known.
struct Others {
    std::uint64_t number = 0;
    std::span<const std::size_t> given;
};

/// Checks a call against recorded specs. Built once per loaded entry; `matches` then allocates nothing.
/// The alias and alignment verdict of the last accepted addresses is remembered, so that a call with unchanged
/// addresses costs one comparison (target: 64 tensors in 200 ns). A call's alignment may be stronger than the
/// recorded one, never weaker. Not thread-safe: one per exec, used under its lock.
class CallGuard {
public:
    /// `device`: ordinal that tensors must be on where a recorded spec's device ("opencl:0") names none.
    CallGuard(std::span<const TensorSpec> recorded, std::span<const ValueSpec> values, std::uint16_t device);

    /// `values`: bits in declaration order. Tensors that are by `others` as in the last accepted call are not looked at.
    [[nodiscard]] bool matches(std::span<const TensorArg> tensors, std::span<const std::uint64_t> values,
                               const Others& others = {}) noexcept;

    /// Did the last accepted call have other addresses than the one before it? (Set by matches.)
    [[nodiscard]] bool moved() const noexcept { return m_moved; }

private:
    [[nodiscard]] bool accepts_places(std::span<const TensorArg> tensors) noexcept;
    [[nodiscard]] bool accepted_all_but(const Others& others) const noexcept;
    void note_accepted(const Others& others) noexcept;

    std::vector<TensorArg> m_expected; ///< as recorded, zero beyond the rank, at the place of the last accepted call
    std::vector<std::uint32_t> m_alignment;
    std::vector<std::uint32_t> m_alias_groups;
    std::vector<std::pair<std::uint32_t, std::int64_t>> m_distances; ///< of a tensor from the first of its group
    std::vector<std::uint64_t> m_values;
    std::vector<std::uint32_t> m_order, m_groups; ///< scratch
    std::uint64_t m_number = 0;                   ///< Others of the last accepted call
    std::vector<std::size_t> m_given;
    bool m_satisfiable = true; ///< false: no TensorArg can look like the recorded specs
    bool m_has_last = false;
    bool m_moved = true;
};

} // namespace warmgraph::guards
