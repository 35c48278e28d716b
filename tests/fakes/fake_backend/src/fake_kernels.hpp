// The kernels that fake programs may name.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// The resolved arguments of a launch. A memory argument reaches from its address to the end of the allocation.
struct FakeArguments {
    std::uint64_t items = 0;                  ///< number of work-items
    std::vector<std::span<std::byte>> memory; ///< the arguments for memory parameters, in order
    std::vector<std::int32_t> values;         ///< the arguments for value parameters, in order
};

struct FakeKernel {
    std::string_view name;
    std::vector<ParamKind> params;
    std::function<void(const FakeArguments&)> run;
};

/// The kernel with this name. Returns nullptr when there is no such kernel.
[[nodiscard]] const FakeKernel* find_fake_kernel(std::string_view name);

} // namespace warmgraph::backends
