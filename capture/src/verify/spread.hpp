// How much a function's results differ from run to run by themselves, and whether a replay stays within that.
#pragma once

#include <string>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

/// Every region's bytes after one run; none of a region that was used in place (TrialMemory).
using Outcomes = std::vector<Bytes>;

class Spread {
public:
    explicit Spread(const Interface& interface, std::vector<DType> types)
        : m_interface(interface), m_types(std::move(types))
    {
    }

    /// Which of the different outcomes so far it was, by order of first appearance.
    std::size_t add(Outcomes outcomes);
    [[nodiscard]] bool is_bitwise() const noexcept { return m_distinct.size() < 2; } ///< all runs so far are equal
    /// not_recordable where runs differ in data that has no tolerance: integers, untyped state, or NaN against a number.
    [[nodiscard]] Result<void> measure();
    /// Is every element within the measured spread of some run? verification_failed names region, element and values.
    [[nodiscard]] Result<void> accept(const Outcomes& replay) const;
    [[nodiscard]] std::string text() const; ///< "bitwise", "within spread 1.2e-07 (8 runs)"

private:
    const Interface& m_interface;
    std::vector<DType> m_types; ///< by region
    std::size_t m_runs = 0;
    std::vector<Outcomes> m_distinct; ///< each once: a large model's outcomes take gigabytes
    std::vector<double> m_tolerance;  ///< largest absolute difference between runs, by region
};

} // namespace warmgraph
