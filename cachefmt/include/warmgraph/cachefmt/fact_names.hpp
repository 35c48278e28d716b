// Names of facts, and values, that more than one folder says: who records them, who compares, who gives the cure.
#pragma once

#include <string_view>

namespace warmgraph::cachefmt::fact {

inline constexpr std::string_view k_backend = "backend";
inline constexpr std::string_view k_device = "device."; ///< with what follows
inline constexpr std::string_view k_driver_version = "driver.version";
inline constexpr std::string_view k_runtime_version = "runtime.version";
inline constexpr std::string_view k_environment = "env."; ///< with the variable's name
inline constexpr std::string_view k_unset = "(unset)";    ///< value of a variable that there is none of
inline constexpr std::string_view k_build_id = "code.build_id";
inline constexpr std::string_view k_binary_path = "binary.path";
inline constexpr std::string_view k_rank = "rank";

/// Has its value an order? These are versions: a newer one is accepted where the caller says so, all others must be equal.
[[nodiscard]] constexpr bool has_order(std::string_view name) noexcept
{
    return name == k_driver_version || name == k_runtime_version;
}

} // namespace warmgraph::cachefmt::fact
