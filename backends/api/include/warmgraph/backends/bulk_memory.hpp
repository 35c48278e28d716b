// Work on large memory where it lies: copy, fill, disturb, compare, hash, search.
//
// Threads: a BulkMemory may be used from any thread. Blocking: each call returns when its work is done; earlier work
// that touches the memory must be done before. No call breaks a capture on this thread. Memory of the device and
// page-locked host memory, at any address and of any size; of no bytes, any address will do.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "warmgraph/backends/address.hpp"
#include "warmgraph/base/dtype.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

class Device;

/// How often and how far one result leaves the envelope of others (BulkMemory::departure).
struct Departure {
    std::uint64_t count = 0; ///< elements outside
    double farthest = 0; ///< of them, in roundings; infinity between NaN and numbers; of whole numbers 0 or infinity
    std::uint64_t first = 0; ///< index of the first element outside; valid when count > 0
    bool operator==(const Departure&) const = default;
};

/// `offset`: in the searched memory.
struct AddressWord {
    std::uint64_t offset = 0, value = 0;
    auto operator<=>(const AddressWord&) const = default;
};

/// [from, to). Empty where from >= to.
struct AddressWindow {
    std::uint64_t from = 0, to = 0;
    auto operator<=>(const AddressWindow&) const = default;
};

/// Not cryptographic. Two of them may be compared when the same BulkMemory made both.
struct Fingerprint {
    std::uint64_t low = 0, high = 0;
    auto operator<=>(const Fingerprint&) const = default;
};

inline constexpr std::uint64_t k_bulk_piece = 16ULL << 20; ///< bytes
inline constexpr std::size_t k_most_others = 8;
inline constexpr std::size_t k_most_windows = 64;

/// Every element becomes another one. Of whole numbers a neighbour, which still is an index where the old one was. Of
/// floating-point numbers one with another exponent (f16: one an eighth away at least): so far away that no tolerance
/// takes one for the other, and finite where the old one was of a usual size.
void disturb(std::span<std::byte> bytes, DType dtype) noexcept;

/// Overlapping, touching and empty windows become few: by address, with gaps between.
[[nodiscard]] std::vector<AddressWindow> merge(std::span<const AddressWindow> windows);

/// This one works on the host, through uploads and downloads: what a device uses that has nothing better.
class BulkMemory {
public:
    /// `piece`: bytes of host memory that one call may take, at most; it is rounded to what the work needs (8 bytes for
    /// each memory that it reads, at least).
    explicit BulkMemory(Device& device, std::uint64_t piece = k_bulk_piece) noexcept : m_device(device), m_piece(piece)
    {
    }
    BulkMemory(const BulkMemory&) = delete;
    BulkMemory& operator=(const BulkMemory&) = delete;
    virtual ~BulkMemory() = default;

    /// Does ahead what the first use does once (CUDA: the driver compiles kernels, 0.2 s). Whether it succeeds, the
    /// first use tells.
    virtual void warm_up() {}
    /// The two do not overlap.
    [[nodiscard]] virtual Result<void> copy(const Address& to, const Address& from, std::uint64_t size);
    [[nodiscard]] virtual Result<void> fill(const MemoryRef& memory, std::byte pattern);
    /// See disturb() above. The memory begins with an element.
    [[nodiscard]] virtual Result<void> disturb(const MemoryRef& memory, DType dtype);

    /// Offset of the first byte that differs; nullopt where all are equal.
    [[nodiscard]] virtual Result<std::optional<std::uint64_t>> first_difference(const Address& a, const Address& b,
                                                                                std::uint64_t size);
    /// Offset of the first byte that is not `pattern`.
    [[nodiscard]] virtual Result<std::optional<std::uint64_t>> first_other(const MemoryRef& memory, std::byte pattern);
    /// Which elements of `candidate` lie outside of what `others` have there.
    ///
    /// Floating point: the envelope of an element reaches from the smallest to the largest number of `others`. An
    /// element is outside when it lies more than `roundings` roundings beyond. One rounding is the distance between
    /// neighbouring numbers of the type at the envelope's larger magnitude (the larger finite one, where there is one):
    /// 0 is exact. NaN is inside where another one is NaN. Equal infinities are inside. A number where all others are
    /// NaN is outside, infinitely far. Whole numbers, boolean: outside unless equal to one of the others.
    /// invalid_argument: no others, or more than k_most_others; `roundings` negative or NaN.
    [[nodiscard]] virtual Result<Departure> departure(const Address& candidate, std::span<const Address> others,
                                                      DType dtype, std::uint64_t elements, double roundings);
    /// Equal for equal bytes, wherever they lie; another one, almost surely, for bytes in another order.
    [[nodiscard]] virtual Result<Fingerprint> fingerprint(const MemoryRef& memory);

    struct Found {
        std::vector<AddressWord> words; ///< the first ones, by offset
        std::uint64_t total = 0;        ///< how many there are in all
        bool operator==(const Found&) const = default;
    };
    /// Words of 8 bytes at multiples of 4 bytes from the memory's start whose value lies in a window. invalid_argument:
    /// more than k_most_windows.
    [[nodiscard]] virtual Result<Found> words_in(const MemoryRef& memory, std::span<const AddressWindow> windows,
                                                 std::size_t most);

protected:
    /// The bytes of a departure's operands; invalid_argument as documented there.
    [[nodiscard]] static Result<std::uint64_t> check_departure(std::span<const Address> others, DType dtype,
                                                               std::uint64_t elements, double roundings);
    [[nodiscard]] static Result<void> check_windows(std::span<const AddressWindow> windows);
    /// The fingerprint of `size` bytes, from the sum of their words (fingerprint.hpp).
    [[nodiscard]] static Fingerprint finish(const Fingerprint& sum, std::uint64_t size) noexcept;

private:
    Device& m_device;
    std::uint64_t m_piece;
};

} // namespace warmgraph::backends
