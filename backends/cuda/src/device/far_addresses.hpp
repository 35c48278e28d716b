// Addresses that nothing else uses, for shadows.
#pragma once

#include <cstdint>
#include <optional>

namespace warmgraph::backends::cuda {

/// Reserves a range of addresses between 2^44 and 2^46 while the object lives. The driver and the process put no memory
/// there (x86-64 and AArch64 use addresses below 2^40 or above 2^46). The upper 32 bits of the range's addresses differ
/// from those of all other ranges, so half a word of a parameter identifies the range. The ranges of all devices share
/// one address space and do not overlap. Thread-safe.
class FarPlace {
public:
    /// Takes a range whose start is a multiple of `unit`. The distances between starts all differ. nullopt: no range is
    /// left.
    [[nodiscard]] static std::optional<FarPlace> take(std::uint64_t size, std::uint64_t unit);
    FarPlace(FarPlace&& other) noexcept;
    FarPlace& operator=(FarPlace&& other) noexcept;
    ~FarPlace();
    [[nodiscard]] std::uint64_t start() const noexcept { return m_start; }

private:
    FarPlace(std::uint64_t slot, std::uint64_t start) noexcept : m_slot(slot), m_start(start) {}
    std::uint64_t m_slot = 0;
    std::uint64_t m_start = 0; ///< 0 after a move
};

/// The number of attempts to get memory at a chosen address. The driver or the system may ignore the request.
inline constexpr int k_wishes = 3;

} // namespace warmgraph::backends::cuda
