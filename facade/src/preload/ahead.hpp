// One function's part in what is done before its first call (Cache::open_all).
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "call/function_impl.hpp"

namespace warmgraph {

/// The entries on disk whose facts hold here; none under the policies off and refresh. Thread-safe, takes no lock.
[[nodiscard]] std::vector<OpenCandidate> candidates_of(const Function::Impl& function);
/// Restores one of them unless a call did so already; `placeholder` is null where none could be reserved. Thread-safe
/// against calls. A failure was counted and logged.
[[nodiscard]] Result<void> restore_ahead(Function::Impl& function, const OpenCandidate& candidate,
                                         std::shared_ptr<const Placeholder> placeholder,
                                         replay::Instantiation instantiation, const std::stop_token& stop);
/// Of what restore_ahead() restored: instantiates what was left for later, and takes from a first call that did not come so
/// far what can be done ahead. Thread-safe.
[[nodiscard]] Result<void> upload(Function::Impl& function, const Digest& guards, const std::stop_token& stop);
/// Is it restored, and was it not called yet? Also while a call of the function is under way.
[[nodiscard]] bool is_unused(Function::Impl& function, const Digest& guards);

} // namespace warmgraph
