// Addresses that nothing else has: what shadows wish for.
#pragma once

#include <cstdint>
#include <optional>

namespace warmgraph::backends::cuda {

/// A range of addresses, taken for as long as the object lives, in the part of the address space between 2^44 and 2^46. Neither
/// the driver's allocations nor the process's own mappings lie there (x86-64 and AArch64 put those below 2^40 or above
/// 2^46). Half a word of a parameter then tells which range it belongs to: the upper 32 bits of its addresses are those of no
/// other taken range. One address space for the process, so the ranges of all devices are apart. Thread-safe.
class FarPlace {
public:
    /// A start that is a multiple of `unit`. The steps between starts differ: two ranges lie apart by no distance that others
    /// have too. nullopt where no range is left.
    [[nodiscard]] static std::optional<FarPlace> take(std::uint64_t size, std::uint64_t unit);
    FarPlace(FarPlace&& other) noexcept;
    FarPlace& operator=(FarPlace&& other) noexcept;
    ~FarPlace();
    [[nodiscard]] std::uint64_t start() const noexcept { return m_start; }

private:
    FarPlace(std::uint64_t slot, std::uint64_t start) noexcept : m_slot(slot), m_start(start) {}
    std::uint64_t m_slot = 0;
    std::uint64_t m_start = 0; ///< 0: moved from
};

/// Whether the driver or the system does as it was asked can only be tried. So many wishes are enough where it does.
inline constexpr int k_wishes = 3;

} // namespace warmgraph::backends::cuda
