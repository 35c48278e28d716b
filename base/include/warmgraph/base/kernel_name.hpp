// Names of kernels as people say them. Machines are given the whole ones.
#pragma once

#include <string>
#include <string_view>

namespace warmgraph {

/// "at::native::elementwise_kernel<128, 2, ...>": the name without parameters, result and anonymous namespaces, with up to
/// two template arguments that are numbers or short words. What is no mangled name stays as it is. At most 120 bytes, cut in
/// the middle, and printable. The name may come from anywhere: what is done with it is bounded.
[[nodiscard]] std::string readable_kernel_name(std::string_view mangled);

} // namespace warmgraph
