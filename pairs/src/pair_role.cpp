#include "warmgraph/pairs/pair_role.hpp"

#include <algorithm>

namespace warmgraph {

cachefmt::RecordingPart recording_of(cachefmt::Part part, const cachefmt::Guards& guards)
{
    if (part == cachefmt::Part::forward) return {cachefmt::new_recording_id(), part};
    const auto bits = [&](const char* name) {
        const auto value = std::ranges::find(guards.values, name, &cachefmt::ValueSpec::name);
        return value == guards.values.end() ? 0 : value->bits;
    };
    return {{bits(k_recording_values[0]), bits(k_recording_values[1])}, part};
}

} // namespace warmgraph
