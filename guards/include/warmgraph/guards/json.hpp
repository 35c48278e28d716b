// Guards as JSON: what the facade leaves beside a function after a miss, and what the command prints.
//   {"facts":   [{"name": "driver.version", "value": "580.159.04", "role": "must_match"}, ...],
//    "tensors": [{"name": "token", "dtype": "i32", "sizes": [1], "strides": [1], "device": "opencl:0",
//                 "alignment": 256, "alias_group": 0, "distance": null}, ...],
//    "values":  [{"name": "layers", "dtype": "i64", "bits": 12}, ...]}
// A fact whose probe failed has the value null, and so has the distance of a tensor where it is no guard. Roles: must_match,
// identity, advisory.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::guards {

/// One line. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string to_json(const cachefmt::Guards& guards);

/// Members it does not know (a time, a process) are left alone. `corrupt` names the first thing that is wrong.
[[nodiscard]] Result<cachefmt::Guards> from_json(std::string_view text);

} // namespace warmgraph::guards
