// Public, C++20.
#pragma once

#include <compare>
#include <cstdint>

namespace warmgraph {

/// The one base of all memory with flat addresses (CUDA): such an address lies at base + offset.
inline constexpr std::uint64_t k_flat_base = 256;

/// A place in device memory: `base` names an allocation (OpenCL: an id that is never given twice in a process; CUDA:
/// always k_flat_base, so that any two addresses are related), `offset` counts bytes from its start. Two addresses are
/// related only within one base. Bases are aligned to 256 bytes at least.
struct Address {
    std::uint64_t base = 0;
    std::uint64_t offset = 0;
    /// Of a device with flat addresses. A null pointer gives the null address.
    [[nodiscard]] static Address from_flat(std::uint64_t flat) noexcept
    {
        return flat == 0 ? Address{} : Address{k_flat_base, flat - k_flat_base};
    }
    [[nodiscard]] static Address from_pointer(const void* pointer) noexcept
    {
        return from_flat(reinterpret_cast<std::uintptr_t>(pointer));
    }
    /// The device pointer. Of an address without flat base (OpenCL) it means nothing.
    [[nodiscard]] std::uint64_t flat() const noexcept { return base + offset; }
    template <class T = void>
    [[nodiscard]] T* pointer() const noexcept
    {
        return reinterpret_cast<T*>(flat()); // NOLINT: an integer is what the driver calls a device pointer
    }
    auto operator<=>(const Address&) const = default;
    friend Address operator+(Address a, std::uint64_t bytes) noexcept { return {a.base, a.offset + bytes}; }
    [[nodiscard]] bool is_null() const noexcept { return base == 0; }
};

/// A non-owning range of device memory.
struct MemoryRef {
    Address address;
    std::uint64_t size = 0; ///< bytes
    auto operator<=>(const MemoryRef&) const = default;
};

} // namespace warmgraph
