// The words of by-value parameters, and the values of semaphores, that follow a declared scalar.
#pragma once

#include <vector>

#include "classify/classify.hpp"
#include "warmgraph/backends/node_places.hpp"

namespace warmgraph {

/// A place that may hold a scalar: bytes or a number.
struct ScalarPlace {
    std::size_t node = 0;
    backends::NodePlace place;
};

/// Returns the slots of the place by offset, found from the probes. not_recordable: a word changes with a scalar but is
/// not the scalar plus a constant at every probe. REQUIRES: the captures have the same structure.
[[nodiscard]] Result<std::vector<cachefmt::Slot>> scalar_slots(const Interface& interface, const Captures& captures,
                                                               const ScalarPlace& place);

/// Judges each probe of one scalar when it is captured, so that thousands of probes need not be kept. Each probe must
/// have the first capture's structure, and the same words must follow the scalar as in its first probe.
class ProbeJudge {
public:
    /// Uses only `captures.first` and `captures.scalars`, which must outlive this object.
    ProbeJudge(const Interface& interface, const Captures& captures);
    /// Errors: not_recordable, for the reasons of check_probe() and scalar_slots().
    [[nodiscard]] Result<void> judge(const ScalarProbe& probe);

private:
    const Interface& m_interface;
    const Captures& m_captures;
    std::vector<ScalarPlace> m_places;
    /// Slots of the first probe, by place; empty before that probe.
    std::vector<std::vector<cachefmt::Slot>> m_expected;
};

} // namespace warmgraph
