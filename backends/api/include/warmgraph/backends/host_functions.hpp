// Host functions that graphs may call by name: entries store the name, never an address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

/// The target of a host node: function(data) runs on a driver's thread, where no driver call is allowed.
struct HostFunction {
    void (*function)(void*) = nullptr;
    void* data = nullptr;
    bool operator==(const HostFunction&) const = default;
};

/// The three functions below are thread-safe. invalid_argument: an empty or unprintable name, a null function, or a
/// name that another function has. `data` must stay valid while graphs that call the function may run.
[[nodiscard]] Result<void> register_host_function(std::string name, const HostFunction& function);
[[nodiscard]] std::optional<HostFunction> find_host_function(std::string_view name);
/// Returns the name of this function with this data; nullopt if it is not registered.
[[nodiscard]] std::optional<std::string> name_of(const HostFunction& function);

} // namespace warmgraph::backends
