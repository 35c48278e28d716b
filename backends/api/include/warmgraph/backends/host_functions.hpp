// Host functions that graphs may call, by name: an entry holds the name, never an address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

/// What a host node calls: function(data), on a thread of the driver's, where no driver call is allowed.
struct HostFunction {
    void (*function)(void*) = nullptr;
    void* data = nullptr;
    bool operator==(const HostFunction&) const = default;
};

/// Thread-safe, all three. invalid_argument: an empty or unprintable name, a null function, a name that is taken by
/// another function. `data` must stay valid while graphs that call it may run.
[[nodiscard]] Result<void> register_host_function(std::string name, const HostFunction& function);
[[nodiscard]] std::optional<HostFunction> find_host_function(std::string_view name);
/// The name under which exactly this function with exactly this data was registered.
[[nodiscard]] std::optional<std::string> name_of(const HostFunction& function);

} // namespace warmgraph::backends
