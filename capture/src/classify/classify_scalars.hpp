// The words of by-value parameters, and the values of semaphores, that follow a declared scalar.
#pragma once

#include <vector>

#include "classify/classify.hpp"
#include "warmgraph/backends/places.hpp"

namespace warmgraph {

/// Where a scalar may be: bytes or a number.
struct ScalarPlace {
    std::size_t node = 0;
    backends::Place place;
};

/// Slots of the place, by offset, as the probes show them. not_recordable: a word that changes with a scalar and is
/// not the scalar plus a constant at every probe. REQUIRES: the captures' structure is the same.
[[nodiscard]] Result<std::vector<cachefmt::Slot>> scalar_slots(const Interface& interface, const Captures& captures,
                                                               const ScalarPlace& place);

/// Judges the probes of one scalar as they are captured, so that thousands need not be kept: each must agree with the
/// first capture in structure, and with the scalar's first probe in which words follow it.
class ProbeJudge {
public:
    /// `captures`: of which `first` and `scalars` are looked at, and stay.
    ProbeJudge(const Interface& interface, const Captures& captures);
    /// not_recordable as check_probe() and scalar_slots().
    [[nodiscard]] Result<void> judge(const ScalarProbe& probe);

private:
    const Interface& m_interface;
    const Captures& m_captures;
    std::vector<ScalarPlace> m_places;
    std::vector<std::vector<cachefmt::Slot>> m_expected; ///< by place; empty before the first probe
};

} // namespace warmgraph
