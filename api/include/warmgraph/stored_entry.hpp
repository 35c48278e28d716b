// An entry as a process can use it that has none of its function's code.
#pragma once

#include <map>
#include <string>

#include "warmgraph/arguments.hpp"
#include "warmgraph/spec.hpp"

namespace warmgraph {

/// What Cache::entries lists.
struct StoredEntry {
    /// For Cache::load, once `states` have addresses: their memory has a size and none. What says which code was recorded
    /// is the entry's own word (Spec::recorded_code, Spec::config); variables of the environment are looked up here.
    Spec spec;
    std::map<std::string, Number> values; ///< what Spec::values were: calls must give the same
    std::string digest;                   ///< of its guards, 64 hex digits: the name of its file
    std::string recorded;                 ///< when, ISO 8601
    std::string misfit; ///< what this device or its driver has otherwise, so that calls would miss; "" for nothing
};

} // namespace warmgraph
