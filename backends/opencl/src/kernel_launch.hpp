// Kernel launches: what is checked, and how geometry and parameters are given to the driver.
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

/// The launch's module, if it is one of this backend's; invalid_argument otherwise.
[[nodiscard]] Result<OpenclModule*> module_of(const RawKernel& work);

/// Everything that can be known without running it; invalid_argument says what is wrong.
[[nodiscard]] Result<void> check_launch(const RawKernel& work, const LaunchLimits& limits, const Memory& memory);
[[nodiscard]] Result<void> check_copy(const RawCopy& work, const Memory& memory);
[[nodiscard]] Result<void> check_fill(const RawFill& work, const Memory& memory);

[[nodiscard]] Result<void> set_param(cl_kernel kernel, cl_uint index, const RawParam& param, Memory& memory);

} // namespace warmgraph::backends::opencl
