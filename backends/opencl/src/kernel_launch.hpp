// Kernel launches: checks, and geometry and parameters in the driver's form.
#pragma once

#include <array>
#include <memory>

#include "memory.hpp"
#include "module.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::opencl {

/// Limits that launches are checked against.
struct LaunchLimits {
    std::uint64_t max_block = 0;
    std::array<std::size_t, 3> max_items{};
    std::uint64_t local_memory = 0;
};

struct Geometry {
    cl_uint dimensions = 1;
    std::array<std::size_t, 3> global{};
    std::array<std::size_t, 3> local{};
};

[[nodiscard]] Geometry geometry_of(const RawKernel& work) noexcept;

/// Returns the launch's module; invalid_argument if it belongs to another backend.
[[nodiscard]] Result<OpenclModule*> module_of(const RawKernel& work);

/// Checks everything that is known before the launch; invalid_argument names the fault.
[[nodiscard]] Result<void> check_launch(const RawKernel& work, const LaunchLimits& limits, const Memory& memory);
[[nodiscard]] Result<void> check_copy(const RawCopy& work, const Memory& memory);
[[nodiscard]] Result<void> check_fill(const RawFill& work, const Memory& memory);

[[nodiscard]] Result<void> set_param(cl_kernel kernel, cl_uint index, const RawParam& param, Memory& memory);

} // namespace warmgraph::backends::opencl
