// Whether Python's objects are those that were there.
#pragma once

#include <cstdint>

#include "api.hpp"
#include "warmgraph/python.h"

namespace warmgraph::python {

/// All of it. It remembers when the dictionaries were the same, where Python tells of changes.
[[nodiscard]] bool is_as_it_was(const Api& api, wg_snapshot& snapshot);

/// Of dictionaries that are watched (PyDict_Watch). Under Python's lock.
[[nodiscard]] std::uint64_t& dict_events();

} // namespace warmgraph::python
