// Guards as JSON, for the file that the facade writes after a miss and for the command's output.
//   {"facts":   [{"name": "driver.version", "value": "580.159.04", "role": "must_match"}, ...],
//    "tensors": [{"name": "token", "dtype": "i32", "sizes": [1], "strides": [1], "device": "opencl:0",
//                 "alignment": 256, "alias_group": 0, "distance": null}, ...],
//    "values":  [{"name": "layers", "dtype": "i64", "bits": 12}, ...]} A fact's value is null if its probe failed. A
//    tensor's distance is null if the distance is not guarded. Roles: must_match, identity, advisory.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::guards {

/// Returns the JSON as one line. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string to_json(const cachefmt::Guards& guards);

/// Reads the guards from JSON. Ignores unknown members (a time, a process). Fails with `corrupt`, whose message names
/// the first error.
[[nodiscard]] Result<cachefmt::Guards> from_json(std::string_view text);

} // namespace warmgraph::guards
