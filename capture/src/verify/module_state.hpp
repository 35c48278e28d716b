// What loaded modules hold besides code: variables that differ from their image's initial values.
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

/// By module.
using ModuleState = std::vector<std::vector<cachefmt::ModuleVariable>>;

/// The device must be idle.
[[nodiscard]] Result<ModuleState> read_module_state(std::span<backends::Module* const> modules);

/// not_recordable when contents hold a word that is an address in a declared region or in a live allocation, or may be
/// a device function's: stored, it would point anywhere in the next process. `modules`: those of `state`. Names
/// variable and offset. `allocation_at` may be null.
[[nodiscard]] Result<void> check_module_state(
    std::span<backends::Module* const> modules, const ModuleState& state, const Interface& interface,
    std::span<const MemoryRef> regions, const std::function<std::optional<MemoryRef>(std::uint64_t)>& allocation_at);

/// not_recordable where a variable differs from its image and nobody vouches for it: its module is not registered, it
/// is not among `frozen` ("*": all are), it is no constant of a library's image, and it holds something else than
/// addresses of constants (Constants::relocated). Gives how many of the latter there are.
[[nodiscard]] Result<std::uint32_t> check_frozen(backends::Device& device, std::span<backends::Module* const> modules,
                                                 const ModuleState& state, std::span<const std::string> frozen);

/// not_recordable where the program asked for the address of a variable (replay::check_exposed) of a module that is not
/// registered: it may write the variable after the recording, or read a result there.
[[nodiscard]] Result<void> check_exposed(backends::Device& device, std::span<backends::Module* const> modules,
                                         const ModuleState& state, std::span<const std::string> frozen);

/// Writes what differs between `now` and `state`, so that `state` holds again. The device must be idle.
[[nodiscard]] Result<void> write_module_state(std::span<backends::Module* const> modules, const ModuleState& state,
                                              const ModuleState& now);

/// not_recordable when the work itself changed a variable between two readings: such state must be a declared region.
[[nodiscard]] Result<void> check_unchanged(const ModuleState& before, const ModuleState& after);

} // namespace warmgraph
