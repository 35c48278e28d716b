// What must be the same for a recorded graph to be valid here.
#pragma once

#include <vector>

#include "driver.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::backends::opencl {

/// Guard facts; a probe that fails gives cachefmt::k_unknown.
[[nodiscard]] std::vector<cachefmt::Fact> device_facts(cl_platform_id platform, cl_device_id device);

/// Those that decide what the compiler makes of a source, in one text.
[[nodiscard]] std::string compiler_identity(cl_platform_id platform, cl_device_id device);
/// The same in two, with what PoCL's variables change. unsupported: one of them names what only PoCL reads, or the driver
/// does not say which it is.
[[nodiscard]] Result<CompilerIdentity> compiled_by(cl_platform_id platform, cl_device_id device);

} // namespace warmgraph::backends::opencl
