// Makes functions, for Cache::wrap and its like, and for pairs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cache/wrapped_function.hpp"
#include "warmgraph/pairs/pair_role.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// `role`: null for a function by itself.
[[nodiscard]] std::shared_ptr<Function::Impl> make_function(const std::shared_ptr<Cache::Impl>& cache, std::string name,
                                                            const std::shared_ptr<Device::Impl>& device, Spec spec,
                                                            Interface interface, Callable callable, const void* code,
                                                            std::unique_ptr<PairRole> role);

/// For FunctionNames.
[[nodiscard]] std::shared_ptr<const WrappedFunction> as_wrapped(const std::shared_ptr<Function::Impl>& function);

/// Gives the name free: the function's handle is gone, whoever still works on it. The callable is not run again.
void retire(Function::Impl& function) noexcept;

/// Throws where nothing says which code a function without a callable was recorded from.
void require_version(std::string_view doing, const std::string& name, const Spec& spec);

} // namespace warmgraph
