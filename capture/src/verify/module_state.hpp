// The variables of loaded modules that differ from their image's initial values.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

/// The variables of each module.
using ModuleState = std::vector<std::vector<cachefmt::ModuleVariable>>;

/// Reads the variables. The device must be idle.
[[nodiscard]] Result<ModuleState> read_module_state(std::span<backends::Module* const> modules);

/// Fails with not_recordable if a variable holds an address in a declared region or a live allocation, or perhaps a
/// device function's address; in another process a stored address would be wrong. The text names variable and offset.
/// `modules`: the modules of `state`. `allocation_at` may be null.
[[nodiscard]] Result<void> check_module_state(
    std::span<backends::Module* const> modules, const ModuleState& state, const Interface& interface,
    std::span<const MemoryRef> regions, const std::function<std::optional<MemoryRef>(std::uint64_t)>& allocation_at);

/// Fails with not_recordable if a variable differs from its image and its value is not vouched for. A value is vouched
/// for if the module is registered, `frozen` lists the variable ("*": all), it is a constant of a library's image, or
/// it holds only addresses of constants (Constants::relocated). Returns the number of variables that hold only
/// addresses of constants.
[[nodiscard]] Result<std::uint32_t> check_frozen(backends::Device& device, std::span<backends::Module* const> modules,
                                                 const ModuleState& state, std::span<const std::string> frozen);

/// Fails with not_recordable if the program asked for a variable's address (replay::check_exposed) in a module that is
/// not registered. The program may write the variable after the recording, or read a result there.
[[nodiscard]] Result<void> check_exposed(backends::Device& device, std::span<backends::Module* const> modules,
                                         const ModuleState& state, std::span<const std::string> frozen);

/// Writes the differences between `now` and `state`, so that the variables have `state` again. The device must be idle.
[[nodiscard]] Result<void> write_module_state(std::span<backends::Module* const> modules, const ModuleState& state,
                                              const ModuleState& now);

/// Fails with not_recordable if the work changed a variable between two readings: such state must be a declared region.
[[nodiscard]] Result<void> check_unchanged(const ModuleState& before, const ModuleState& after);

} // namespace warmgraph
