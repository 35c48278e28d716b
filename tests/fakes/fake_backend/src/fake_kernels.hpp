// The kernels that fake programs may name.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// A launch's resolved arguments; memory goes from its address to the end of its allocation.
struct FakeArguments {
    std::uint64_t items = 0;                  ///< work-items
    std::vector<std::span<std::byte>> memory; ///< the memory parameters, in order
    std::vector<std::int32_t> values;         ///< the value parameters, in order
};

struct FakeKernel {
    std::string_view name;
    std::vector<ParamKind> params;
    std::function<void(const FakeArguments&)> run;
};

/// Returns nullptr when no kernel has this name.
[[nodiscard]] const FakeKernel* find_fake_kernel(std::string_view name);

} // namespace warmgraph::backends
