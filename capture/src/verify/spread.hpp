// How much a function's results differ from run to run by themselves, and whether a replay stays within that.
//
// Results stay on the device: of each region every distinct outcome is kept once. Integers, booleans and untyped states
// have no tolerance. A floating-point result may leave the envelope of the function's own runs no oftener and no
// farther than one of those runs leaves the envelope of the others; one rounding of its type beyond the envelope is no
// departure. Of nine runs that are alike each is the farthest as often, so that a replay is by chance, and then not by
// much (Trials::accept_at).
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

/// Own runs that are compared, at most: as many as BulkMemory compares with at once.
inline constexpr std::size_t k_most_own_runs = backends::k_most_others;

class Spread {
public:
    /// `compared`: by region; the others may hold anything. Outlived by the device and the interface.
    Spread(std::shared_ptr<backends::Device> device, const Interface& interface, std::vector<DType> types,
           std::vector<std::uint8_t> compared);
    Spread(const Spread&) = delete;
    Spread& operator=(const Spread&) = delete;
    ~Spread();

    /// What one run left: where each region lies now. What is new is copied. Gives a number that is the same for runs
    /// with the same results. out_of_memory where the device has no room for a further outcome.
    [[nodiscard]] Result<std::size_t> add(const std::vector<MemoryRef>& regions);
    [[nodiscard]] bool is_bitwise() const noexcept; ///< all runs so far are equal
    /// After the last add(). not_recordable where runs differ in data that has no tolerance: integers, untyped state,
    /// or NaN against a number.
    [[nodiscard]] Result<void> measure();
    /// Are the results at `replay` within the spread? verification_failed names region, element and how far it is.
    [[nodiscard]] Result<void> accept(const std::vector<MemoryRef>& replay) const;
    /// They are outside of it no oftener and no farther than twice an own run: one run in nine is, by chance.
    [[nodiscard]] bool is_near(const std::vector<MemoryRef>& replay) const;
    /// The same of what the function itself left when it was called. From then on it counts as a run in text().
    [[nodiscard]] Result<void> accept_answer(const std::vector<MemoryRef>& answer);
    [[nodiscard]] std::string text()
        const; ///< "bitwise (3 runs)", "within spread (8 runs, 12 elements by 3 roundings)"

private:
    struct Region {
        std::vector<MemoryRef> outcomes; ///< distinct ones, owned
        backends::Departure tolerance{}; ///< the most that one own outcome departs from the others
    };
    [[nodiscard]] Result<std::size_t> outcome(std::size_t region, const MemoryRef& memory);
    [[nodiscard]] Result<std::size_t> keep(Region& region, const MemoryRef& memory);
    [[nodiscard]] Result<backends::Departure> departure(std::size_t region, const Address& candidate,
                                                        std::size_t left_out) const;
    [[nodiscard]] std::uint64_t elements(std::size_t region) const noexcept;
    /// `times`: how much more than an own run it may depart.
    [[nodiscard]] Result<void> accept_region(std::size_t region, const MemoryRef& results, std::string_view whose,
                                             unsigned times = 1) const;

    std::shared_ptr<backends::Device> m_device;
    const Interface& m_interface;
    std::vector<DType> m_types;
    std::vector<std::uint8_t> m_compared;
    std::vector<Region> m_regions;
    std::vector<std::vector<std::size_t>> m_runs; ///< each run's outcome of every region
    std::size_t m_answers = 0;
};

} // namespace warmgraph
