// Public, C++20.
#pragma once

#include <compare>
#include <cstdint>

namespace warmgraph {

/// The base of all memory on devices with flat addresses (CUDA). There a pointer is base + offset.
inline constexpr std::uint64_t k_flat_base = 256;

/// A place in device memory. `base` names an allocation: on OpenCL an id that is unique in the process, on CUDA always
/// k_flat_base, so that any two addresses are comparable. `offset` is bytes from the start. Only addresses with one
/// base are comparable. Bases are aligned to 256 bytes or more.
struct Address {
    std::uint64_t base = 0;
    std::uint64_t offset = 0;
    /// Converts a pointer of a device with flat addresses. A null pointer gives the null address.
    [[nodiscard]] static Address from_flat(std::uint64_t flat) noexcept
    {
        return flat == 0 ? Address{} : Address{k_flat_base, flat - k_flat_base};
    }
    [[nodiscard]] static Address from_pointer(const void* pointer) noexcept
    {
        return from_flat(reinterpret_cast<std::uintptr_t>(pointer));
    }
    /// The device pointer. Meaningless for an address without flat base (OpenCL).
    [[nodiscard]] std::uint64_t flat() const noexcept { return base + offset; }
    template <class T = void>
    [[nodiscard]] T* pointer() const noexcept
    {
        return reinterpret_cast<T*>(flat()); // NOLINT: drivers represent a device pointer as an integer
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
