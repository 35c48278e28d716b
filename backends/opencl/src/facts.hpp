// Facts that must be equal for a recorded graph to be valid here.
#pragma once

#include <vector>

#include "driver.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::backends::opencl {

/// Returns the guard facts. A fact that cannot be read has the value cachefmt::k_unknown.
[[nodiscard]] std::vector<cachefmt::Fact> device_facts(cl_platform_id platform, cl_device_id device);

/// The facts that decide how a source is compiled, as one text.
[[nodiscard]] std::string compiler_identity(cl_platform_id platform, cl_device_id device);
/// Returns these facts as a CompilerIdentity, with PoCL's variables. unsupported: a variable has a value whose effect
/// only PoCL knows, or the driver does not report its version.
[[nodiscard]] Result<CompilerIdentity> compiled_by(cl_platform_id platform, cl_device_id device);

} // namespace warmgraph::backends::opencl
