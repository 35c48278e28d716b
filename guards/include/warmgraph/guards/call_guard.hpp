// The guards of every call: compares its tensors and values with the recorded tensors and values.
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
    std::uint64_t base = 0;   ///< address of the allocation (Address::base)
    std::uint64_t offset = 0; ///< bytes from `base`
    DType dtype = DType::u8;
    std::uint8_t rank = 0;
    std::uint16_t device = 0;                                 ///< the device's ordinal within the backend
    std::array<std::int64_t, cachefmt::k_max_rank> sizes{};   ///< the first `rank` elements are used
    std::array<std::int64_t, cachefmt::k_max_rank> strides{}; ///< in elements; the first `rank` are used
};

/// Returns the bytes from the first element to the end of the last element (0 if a size is 0). Negative strides are not
/// supported; the result is then the extent for the strides' absolute values.
[[nodiscard]] std::uint64_t extent_bytes(const TensorArg& tensor) noexcept;

/// Returns the largest power of two up to k_max_alignment that divides the offset (bases are aligned to at least
/// k_max_alignment).
[[nodiscard]] std::uint32_t alignment_class(std::uint64_t offset) noexcept;

/// Returns for each tensor the index of the first tensor that its bytes overlap (transitively), or its own index. O(n
/// log n). Tensors of extent 0 overlap nothing.
[[nodiscard]] std::vector<std::uint32_t> alias_groups(std::span<const TensorArg> tensors);

/// Returns the specs of a call, for a recording or evaluate(). `names`: one per tensor. `device_prefix`: for example
/// "opencl:".
[[nodiscard]] std::vector<TensorSpec> describe(std::span<const TensorArg> tensors, std::span<const std::string> names,
                                               const std::string& device_prefix);

/// Adds to the specs of overlapping tensors the distance from the first tensor of their group (TensorSpec::distance).
void guard_distances(std::span<TensorSpec> specs, std::span<const TensorArg> tensors);
/// Removes the distances: any distance at which the same tensors overlap is then accepted.
void forget_distances(std::span<TensorSpec> specs) noexcept;

/// Tells which tensors of two calls may differ. If the calls have the same `number` and the same `given`, only the
/// tensors in `given` may differ (indices, in the call's order). Number 0: nothing is known.
struct ChangedTensors {
    std::uint64_t number = 0;
    std::span<const std::size_t> given;
};

/// Checks a call against recorded specs. Built once per loaded entry; `matches` then allocates nothing. Remembers the
/// alias and alignment verdict of the last accepted addresses, so that a call with unchanged addresses costs one
/// comparison (target: 64 tensors in 200 ns). A call's alignment may be stronger than the recorded one, never weaker.
/// Not thread-safe: each exec has one guard, which is used under the exec's lock.
class CallGuard {
public:
    /// `device`: the ordinal of the device that tensors must be on if the device of a recorded spec ("opencl:0") names
    /// no ordinal.
    CallGuard(std::span<const TensorSpec> recorded, std::span<const ValueSpec> values, std::uint16_t device);

    /// Whether a call matches the recorded guards. `values`: the values' bits, in the order of the declaration.
    /// `others` shows which tensors did not change; these are skipped.
    [[nodiscard]] bool matches(std::span<const TensorArg> tensors, std::span<const std::uint64_t> values,
                               const ChangedTensors& others = {}) noexcept;

    /// Whether the last accepted call had other addresses than the accepted call before it.
    [[nodiscard]] bool moved() const noexcept { return m_moved; }

private:
    [[nodiscard]] bool accepts_places(std::span<const TensorArg> tensors) noexcept;
    [[nodiscard]] bool accepted_all_but(const ChangedTensors& others) const noexcept;
    void note_accepted(const ChangedTensors& others) noexcept;

    std::vector<TensorArg> m_expected; ///< the recorded tensors at the last accepted addresses; zeros beyond the rank
    std::vector<std::uint32_t> m_alignment;
    std::vector<std::uint32_t> m_alias_groups;
    /// The tensor's index, and its distance from the first tensor of its group.
    std::vector<std::pair<std::uint32_t, std::int64_t>> m_distances;
    std::vector<std::uint64_t> m_values;
    std::vector<std::uint32_t> m_order, m_groups; ///< scratch memory of matches()
    std::uint64_t m_number = 0;                   ///< ChangedTensors::number of the last accepted call
    std::vector<std::size_t> m_given;
    bool m_satisfiable = true; ///< false: no TensorArg can look like the recorded specs
    bool m_has_last = false;
    bool m_moved = true;
};

} // namespace warmgraph::guards
