// Short kernel names for people. Files and JSON keep the mangled names.
#pragma once

#include <string>
#include <string_view>

namespace warmgraph {

/// Returns e.g. "at::native::elementwise_kernel<128, 2, ...>": the name without parameters, result type and anonymous
/// namespaces, with at most two short template arguments. The result is printable, and cut in the middle to 120 bytes.
/// A name that is not mangled stays unchanged. The name may be hostile: time and memory are bounded.
[[nodiscard]] std::string readable_kernel_name(std::string_view mangled);

} // namespace warmgraph
