// Makes functions for Cache::wrap and similar calls, and for pairs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cache/wrapped_function.hpp"
#include "warmgraph/pairs/pair_role.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// Makes a function. `role`: null for a single function.
[[nodiscard]] std::shared_ptr<Function::Impl> make_function(const std::shared_ptr<Cache::Impl>& cache, std::string name,
                                                            const std::shared_ptr<Device::Impl>& device, Spec spec,
                                                            Interface interface, Callable callable, const void* code,
                                                            std::unique_ptr<PairRole> role);

/// Makes the function's object for FunctionNames.
[[nodiscard]] std::shared_ptr<const WrappedFunction> as_wrapped(const std::shared_ptr<Function::Impl>& function);

/// Call this when the function's handle is destroyed, which may be during a call. Releases the function's name. The
/// callable does not run again.
void retire(Function::Impl& function) noexcept;

/// Throws if a function without a callable has no version. Without a version nothing shows from which code the function
/// was recorded.
void require_version(std::string_view doing, const std::string& name, const Spec& spec);

} // namespace warmgraph
