// A stored entry, for a process that has none of its function's code.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "warmgraph/arguments.hpp"
#include "warmgraph/spec.hpp"

namespace warmgraph {

/// Chooses the entries that Cache::entries lists, and the members that it fills in.
struct EntryQuery {
    /// Lists only entries that a call of a function with this Spec could use, as far as a header shows it: their facts
    /// hold here, and their inputs and states look as declared. Outputs are not compared: a caller may learn them from
    /// the entry. The Spec needs a version. nullopt: all entries of the function.
    std::optional<Spec> spec{};
    /// At most this many entries, the last used ones.
    std::size_t most = std::numeric_limits<std::size_t>::max();
    /// Fills in only Spec::metadata, `digest`, `recorded` and `misfit` of each StoredEntry, which is quicker.
    bool metadata_only = false;
};

/// An entry that Cache::entries lists.
struct StoredEntry {
    /// The Spec for Cache::load, once each of `states` has an address: here, their memory has only a size. The entry
    /// itself says which code was recorded (Spec::recorded_code, Spec::config); environment variables are looked up
    /// here.
    Spec spec;
    std::map<std::string, Number> values; ///< the recorded Spec::values, by name: calls must give the same
    std::string digest;                   ///< digest of the entry's guards, 64 hex digits: the name of the entry's file
    std::string recorded;                 ///< time of the recording, ISO 8601
    std::string misfit; ///< how this device or its driver differs, so that calls would miss; "" where it does not
};

} // namespace warmgraph
