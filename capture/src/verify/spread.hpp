// How much a function's results differ from run to run, and whether a replay's results are within that spread.
//
// Results stay on the device; each distinct outcome of a region is stored once. Integers, booleans and untyped states
// have no tolerance. A floating-point result may leave the envelope of the function's own runs no more often and no
// farther than one of those runs leaves the envelope of the others; one rounding of its type is tolerated. One of nine
// similar runs is always the farthest. If this is the replay, it fails narrowly (Trials::accept_at).
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

/// The most own runs that are compared: as many as BulkMemory compares with at once.
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
    /// Call this after the last add(). not_recordable: runs differ in data without tolerance: integers, untyped state,
    /// or NaN in place of a number.
    [[nodiscard]] Result<void> measure();
    /// verification_failed: the results at `replay` are not within the spread. Names region, element and distance.
    [[nodiscard]] Result<void> accept(const std::vector<MemoryRef>& replay) const;
    /// Whether the results leave the spread at most twice as often and as far as an own run (one in nine runs does).
    [[nodiscard]] bool is_near(const std::vector<MemoryRef>& replay) const;
    /// accept() for the answer. From then on it counts as a run in text().
    [[nodiscard]] Result<void> accept_answer(const std::vector<MemoryRef>& answer);
    [[nodiscard]] std::string text()
        const; ///< "bitwise (3 runs)", "within spread (8 runs, 12 elements by 3 roundings)"

private:
    struct Region {
        std::vector<MemoryRef> outcomes; ///< distinct outcomes, owned
        backends::Departure tolerance{}; ///< how far one own outcome departs from the others at most
    };
    [[nodiscard]] Result<std::size_t> outcome(std::size_t region, const MemoryRef& memory);
    [[nodiscard]] Result<std::size_t> keep(Region& region, const MemoryRef& memory);
    [[nodiscard]] Result<backends::Departure> departure(std::size_t region, const Address& candidate,
                                                        std::size_t left_out) const;
    [[nodiscard]] std::uint64_t elements(std::size_t region) const noexcept;
    /// `times`: how many times an own run's departure is allowed.
    [[nodiscard]] Result<void> accept_region(std::size_t region, const MemoryRef& results, std::string_view whose,
                                             unsigned times = 1) const;

    std::shared_ptr<backends::Device> m_device;
    const Interface& m_interface;
    std::vector<DType> m_types;
    std::vector<std::uint8_t> m_compared;
    std::vector<Region> m_regions;
    std::vector<std::vector<std::size_t>> m_runs; ///< for each run the outcome of every region
    std::size_t m_answers = 0;
};

} // namespace warmgraph
