#include "warmgraph/guards/call_guard.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "alias_sweep.hpp"

namespace warmgraph::guards {

namespace {

constexpr std::uint64_t k_ones = ~std::uint64_t{0};

/// k_masks[r][i] is all ones for i < r, so that dimensions are compared without a branch on the rank.
constexpr auto k_masks = [] {
    std::array<std::array<std::uint64_t, cachefmt::k_max_rank>, cachefmt::k_max_rank + 1> masks{};
    for (std::size_t rank = 0; rank < masks.size(); ++rank)
        for (std::size_t i = 0; i < rank; ++i) masks[rank][i] = k_ones;
    return masks;
}();

/// Ranks up to this are compared without a loop; most tensors have such a rank.
constexpr std::size_t k_short_rank = 4;
static_assert(2 * k_short_rank == cachefmt::k_max_rank);

/// Returns dtype, rank and device as one number; these members are adjacent.
std::uint32_t head_of(const TensorArg& tensor) noexcept
{
    static_assert(offsetof(TensorArg, rank) == offsetof(TensorArg, dtype) + 1 &&
                  offsetof(TensorArg, device) == offsetof(TensorArg, dtype) + 2);
    std::uint32_t head = 0;
    std::memcpy(&head, reinterpret_cast<const std::byte*>(&tensor) + offsetof(TensorArg, dtype), sizeof head);
    return head;
}

/// Two dimensions, which are compared at once (GCC's and Clang's vector extension, one register of baseline x86-64 and
/// ARM64). GCC 12 does not vectorise such a loop at -O2: 177 ns against 128 ns for 64 tensors of rank 2-3, on a shared
/// two-core machine.
using Pair = std::uint64_t __attribute__((vector_size(16)));

Pair pair_at(const void* from) noexcept
{
    Pair pair;
    std::memcpy(&pair, from, sizeof pair);
    return pair;
}

/// Returns the bits that differ in the dimensions [Begin, Begin + k_short_rank).
template <std::size_t Begin>
Pair difference(const TensorArg& expected, const TensorArg& now) noexcept
{
    const auto& mask = k_masks[expected.rank];
    Pair bits{};
    for (std::size_t i = Begin; i < Begin + k_short_rank; i += 2)
        bits |= ((pair_at(&expected.sizes[i]) ^ pair_at(&now.sizes[i])) |
                 (pair_at(&expected.strides[i]) ^ pair_at(&now.strides[i]))) &
                pair_at(&mask[i]);
    return bits;
}

/// The differences found so far between a call's tensors and the expected tensors.
struct TensorDifference {
    std::uint32_t heads = 0;
    std::uint64_t places = 0;
    Pair dimensions{};

    void add(const TensorArg& expected, const TensorArg& now) noexcept
    {
        heads |= head_of(expected) ^ head_of(now);
        places |= (expected.base ^ now.base) | (expected.offset ^ now.offset);
        dimensions |= difference<0>(expected, now);
        if (expected.rank > k_short_rank) dimensions |= difference<k_short_rank>(expected, now);
    }
    [[nodiscard]] bool is_only_of_places() const noexcept { return heads == 0 && (dimensions[0] | dimensions[1]) == 0; }
};

std::uint16_t ordinal_of(const std::string& device, std::uint16_t otherwise)
{
    const std::size_t colon = device.rfind(':');
    if (colon == std::string::npos) return otherwise;
    std::uint16_t ordinal = 0;
    const char* end = device.data() + device.size();
    const auto [stop, error] = std::from_chars(device.data() + colon + 1, end, ordinal);
    return error == std::errc{} && stop == end ? ordinal : otherwise;
}

} // namespace

CallGuard::CallGuard(std::span<const TensorSpec> recorded, std::span<const ValueSpec> values, std::uint16_t device)
    : m_order(recorded.size()), m_groups(recorded.size())
{
    for (const TensorSpec& spec : recorded) {
        TensorArg expected;
        expected.dtype = spec.dtype;
        expected.device = ordinal_of(spec.device, device);
        if (spec.sizes.size() > cachefmt::k_max_rank || spec.strides.size() != spec.sizes.size()) {
            m_satisfiable = false;
        } else {
            expected.rank = static_cast<std::uint8_t>(spec.sizes.size());
            std::ranges::copy(spec.sizes, expected.sizes.begin());
            std::ranges::copy(spec.strides, expected.strides.begin());
        }
        m_expected.push_back(expected);
        m_alignment.push_back(spec.alignment);
        if (spec.distance && spec.alias_group < recorded.size())
            m_distances.emplace_back(static_cast<std::uint32_t>(m_alias_groups.size()), *spec.distance);
        m_alias_groups.push_back(spec.alias_group);
    }
    m_given.reserve(recorded.size());
    for (const ValueSpec& value : values) m_values.push_back(value.bits);
}

bool CallGuard::matches(std::span<const TensorArg> tensors, std::span<const std::uint64_t> values,
                        const ChangedTensors& others) noexcept
{
    if (!m_satisfiable || tensors.size() != m_expected.size() || !std::ranges::equal(values, m_values)) return false;
    TensorDifference found;
    // Then only the given tensors are compared, because a model's hundreds of weights do not change.
    if (accepted_all_but(others))
        for (const std::size_t i : others.given) found.add(m_expected[i], tensors[i]);
    else
        for (std::size_t i = 0; i < tensors.size(); ++i) found.add(m_expected[i], tensors[i]);
    if (!found.is_only_of_places()) return false;
    const bool moved = !m_has_last || found.places != 0;
    // Sizes and strides are equal, so equal addresses have the alignment and overlap that were accepted before.
    if (moved && !accepts_places(tensors)) return false;
    m_moved = moved;
    note_accepted(others);
    return true;
}

bool CallGuard::accepted_all_but(const ChangedTensors& others) const noexcept
{
    return m_has_last && others.number != 0 && others.number == m_number && std::ranges::equal(others.given, m_given);
}

void CallGuard::note_accepted(const ChangedTensors& others) noexcept
{
    // m_given has room for each tensor once. A longer list would allocate, so it is not remembered.
    m_number = others.given.size() <= m_given.capacity() ? others.number : 0;
    if (m_number != 0) m_given.assign(others.given.begin(), others.given.end());
}

bool CallGuard::accepts_places(std::span<const TensorArg> tensors) noexcept
{
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (alignment_class(tensors[i].offset) < m_alignment[i]) return false;
    sweep_aliases(tensors, m_order, m_groups);
    if (m_groups != m_alias_groups) return false;
    for (const auto& [i, distance] : m_distances)
        if (static_cast<std::int64_t>(tensors[i].offset - tensors[m_alias_groups[i]].offset) != distance) return false;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        m_expected[i].base = tensors[i].base;
        m_expected[i].offset = tensors[i].offset;
    }
    m_has_last = true;
    return true;
}

} // namespace warmgraph::guards
