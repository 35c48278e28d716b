// Compares Python's objects with those that were recorded.
#pragma once

#include <cstdint>

#include "api.hpp"
#include "warmgraph/python.h"

namespace warmgraph::python {

/// Compares a whole snapshot. If Python reports changes of the dictionaries, it notes the count at which they were the
/// same.
[[nodiscard]] bool is_as_it_was(const Api& api, wg_snapshot& snapshot);

/// Returns the count of the events of watched dictionaries (PyDict_Watch). The caller holds Python's lock.
[[nodiscard]] std::uint64_t& dict_events();

} // namespace warmgraph::python
