// How much a function's results differ from run to run, and whether a replay's results are within that spread.
//
// Results stay on the device; each distinct outcome of a region is stored once. Integers, booleans and untyped states
// have no tolerance. A floating-point result may leave the envelope of the function's own runs no more often and no
// farther than one of those runs leaves the envelope of the others; one rounding of its type is tolerated. One of nine
// similar runs is always the farthest. If the replay is the farthest, it fails narrowly (Trials::accept_at).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

/// The most runs of the function that are compared: BulkMemory compares with at most this many at once.
inline constexpr std::size_t k_most_own_runs = backends::k_most_others;

class Spread {
public:
    /// `compared`: whether each region's results are compared. The device and the interface must outlive this object.
    Spread(std::shared_ptr<backends::Device> device, const Interface& interface, std::vector<DType> types,
           std::vector<std::uint8_t> compared);
    Spread(const Spread&) = delete;
    Spread& operator=(const Spread&) = delete;
    ~Spread();

    /// Adds one run's results, which the regions hold now; copies new outcomes. Returns a number that is equal for runs
    /// with equal results. out_of_memory: the device has no room for another outcome.
    [[nodiscard]] Result<std::size_t> add(const std::vector<MemoryRef>& regions);
    [[nodiscard]] bool is_bitwise() const noexcept; ///< whether all runs so far are equal
    /// Call this after the last add(). Measures the tolerance of each region. not_recordable: runs differ in data that
    /// has no tolerance (integers, untyped state, or NaN in place of a number).
    [[nodiscard]] Result<void> measure();
    /// Fails with verification_failed if the results at `replay` are not within the spread. The message names region,
    /// element and distance.
    [[nodiscard]] Result<void> accept(const std::vector<MemoryRef>& replay) const;
    /// Whether the results are outside the spread at most twice as often and twice as far as a run of the function
    /// itself.
    [[nodiscard]] bool is_near(const std::vector<MemoryRef>& replay) const;
    /// As accept(), for the answer. After that the answer counts as a run in text().
    [[nodiscard]] Result<void> accept_answer(const std::vector<MemoryRef>& answer);
    [[nodiscard]] std::string text()
        const; ///< "bitwise (3 runs)", "within spread (8 runs, 12 elements by 3 roundings)"

private:
    struct Region {
        std::vector<MemoryRef> outcomes; ///< the distinct outcomes; this object owns the memory
        backends::Departure tolerance{}; ///< the farthest departure of one own outcome from the other own outcomes
    };
    [[nodiscard]] Result<std::size_t> outcome(std::size_t region, const MemoryRef& memory);
    [[nodiscard]] Result<std::size_t> keep(Region& region, const MemoryRef& memory);
    [[nodiscard]] Result<backends::Departure> departure(std::size_t region, const Address& candidate,
                                                        std::size_t left_out) const;
    [[nodiscard]] std::uint64_t elements(std::size_t region) const noexcept;
    /// `times`: the results may be outside this many times as often and as far as the tolerance allows.
    [[nodiscard]] Result<void> accept_region(std::size_t region, const MemoryRef& results, std::string_view whose,
                                             unsigned times = 1) const;

    std::shared_ptr<backends::Device> m_device;
    const Interface& m_interface;
    std::vector<DType> m_types;
    std::vector<std::uint8_t> m_compared;
    std::vector<Region> m_regions;
    std::vector<std::vector<std::size_t>> m_runs; ///< for each run the index of every region's outcome
    std::size_t m_answers = 0;
};

} // namespace warmgraph
