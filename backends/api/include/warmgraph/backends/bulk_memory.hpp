// Operations on large memory in place: copy, fill, disturb, compare, hash, search.
//
// Any thread may use a BulkMemory. Each call blocks until its work is done; earlier work on the memory must have
// finished. No call breaks a capture on this thread. The memory is device memory or page-locked host memory, at any
// address and of any size; with size 0 the address is ignored.
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

/// The number of elements outside the envelope, and the largest distance (BulkMemory::departure).
struct Departure {
    std::uint64_t count = 0; ///< elements outside
    double farthest = 0; ///< largest distance in roundings: infinity for NaN and a number, 0 or infinity for integers
    std::uint64_t first = 0; ///< index of the first element outside; valid when count > 0
    bool operator==(const Departure&) const = default;
};

/// A word that words_in() found. `offset` counts bytes from the start of the searched memory.
struct AddressWord {
    std::uint64_t offset = 0, value = 0;
    auto operator<=>(const AddressWord&) const = default;
};

/// The addresses from `from` to below `to`; none if from >= to.
struct AddressWindow {
    std::uint64_t from = 0, to = 0;
    auto operator<=>(const AddressWindow&) const = default;
};

/// A hash that is not cryptographic. Compare it only with fingerprints from the same BulkMemory.
struct Fingerprint {
    std::uint64_t low = 0, high = 0;
    auto operator<=>(const Fingerprint&) const = default;
};

/// A step of BulkMemory::run().
struct BulkStep {
    enum class What : std::uint8_t { copy, fill, expect_same, expect_filled };
    What what = What::copy;
    MemoryRef memory;     ///< copy, fill: the memory that is written; otherwise the memory that is compared
    Address other;        ///< copy: the source; expect_same: the memory that should hold the same bytes
    std::byte pattern{0}; ///< fill, expect_filled: the byte
};

/// The first step of BulkMemory::run() whose expectation was not true, and the offset of the first byte that differs.
struct BulkFinding {
    std::size_t step = 0;
    std::uint64_t offset = 0;
    bool operator==(const BulkFinding&) const = default;
};

inline constexpr std::uint64_t k_bulk_piece = 16ULL << 20; ///< bytes
inline constexpr std::size_t k_most_others = 8;
inline constexpr std::size_t k_most_windows = 64;

/// Changes every element. An integer changes by one, so that a valid index usually stays valid. A floating-point number
/// gets another exponent (f16: it changes by at least an eighth): no tolerance accepts it as equal, and it stays finite
/// if it was of a usual size.
void disturb(std::span<std::byte> bytes, DType dtype) noexcept;

/// Sorts windows, joins those that overlap or touch, and drops empty ones.
[[nodiscard]] std::vector<AddressWindow> merge(std::span<const AddressWindow> windows);

/// This base class works on the host, through uploads and downloads, for devices without a faster way.
class BulkMemory {
public:
    /// `piece` is the most host memory, in bytes, that one call may take. It is rounded up to the minimum: 8 bytes for
    /// each memory that the call reads.
    explicit BulkMemory(Device& device, std::uint64_t piece = k_bulk_piece) noexcept : m_device(device), m_piece(piece)
    {
    }
    BulkMemory(const BulkMemory&) = delete;
    BulkMemory& operator=(const BulkMemory&) = delete;
    virtual ~BulkMemory() = default;

    /// Does the one-time work of the first use ahead (CUDA: the driver compiles kernels, 0.2 s). If it fails, the first
    /// use returns the error.
    virtual void warm_up() {}
    /// The two ranges must not overlap.
    [[nodiscard]] virtual Result<void> copy(const Address& to, const Address& from, std::uint64_t size);
    [[nodiscard]] virtual Result<void> fill(const MemoryRef& memory, std::byte pattern);
    /// See disturb() above. The memory must begin at an element.
    [[nodiscard]] virtual Result<void> disturb(const MemoryRef& memory, DType dtype);

    /// Returns the offset of the first byte that differs; nullopt if all are equal.
    [[nodiscard]] virtual Result<std::optional<std::uint64_t>> first_difference(const Address& a, const Address& b,
                                                                                std::uint64_t size);
    /// Returns the offset of the first byte that is not `pattern`.
    [[nodiscard]] virtual Result<std::optional<std::uint64_t>> first_other(const MemoryRef& memory, std::byte pattern);
    /// Counts the elements of `candidate` that lie outside the envelope of `others`.
    ///
    /// Floating point: an element's envelope reaches from the smallest to the largest number of `others`. The element
    /// is outside if it lies more than `roundings` roundings beyond. One rounding is the distance between neighbouring
    /// numbers of the type at the envelope's largest finite magnitude; 0 roundings means exact. NaN is inside if one of
    /// `others` is NaN. Equal infinities are inside. A number is infinitely far outside if all others are NaN. Integers
    /// and booleans are outside unless equal to one of the others. invalid_argument: no others or more than
    /// k_most_others; `roundings` negative or NaN.
    [[nodiscard]] virtual Result<Departure> departure(const Address& candidate, std::span<const Address> others,
                                                      DType dtype, std::uint64_t elements, double roundings);
    /// Returns a fingerprint. Equal bytes give equal fingerprints, at any address; other bytes or another order almost
    /// never do.
    [[nodiscard]] virtual Result<Fingerprint> fingerprint(const MemoryRef& memory);

    /// Runs the steps in their order, and waits once for all of them: on a device that several processes share, each
    /// wait can take a millisecond. Returns nullopt if all expectations were true. After an expectation that was not
    /// true, and after an error, later steps may have run.
    [[nodiscard]] virtual Result<std::optional<BulkFinding>> run(std::span<const BulkStep> steps);
    /// Returns fingerprint() of each memory. Waits once.
    [[nodiscard]] virtual Result<std::vector<Fingerprint>> fingerprints(std::span<const MemoryRef> memory);

    struct AddressMatches {
        std::vector<AddressWord> words; ///< the first words that were found, sorted by offset
        std::uint64_t total = 0;        ///< number of words that were found
        bool operator==(const AddressMatches&) const = default;
    };
    /// Finds 8-byte words at multiples of 4 bytes from the memory's start whose value lies in a window.
    /// invalid_argument: more than k_most_windows.
    [[nodiscard]] virtual Result<AddressMatches> words_in(const MemoryRef& memory,
                                                          std::span<const AddressWindow> windows, std::size_t most);

protected:
    /// Returns the size in bytes of each operand of departure(). invalid_argument: as for departure().
    [[nodiscard]] static Result<std::uint64_t> check_departure(std::span<const Address> others, DType dtype,
                                                               std::uint64_t elements, double roundings);
    [[nodiscard]] static Result<void> check_windows(std::span<const AddressWindow> windows);
    /// Computes the fingerprint of `size` bytes from the sum of their words (fingerprint.hpp).
    [[nodiscard]] static Fingerprint finish(const Fingerprint& sum, std::uint64_t size) noexcept;

private:
    Device& m_device;
    std::uint64_t m_piece;
};

} // namespace warmgraph::backends
