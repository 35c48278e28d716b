// Names and values of facts that several folders use: to record them, compare them and suggest a cure.
#pragma once

#include <string_view>

namespace warmgraph::cachefmt::fact {

inline constexpr std::string_view k_backend = "backend";
inline constexpr std::string_view k_device = "device."; ///< a prefix
inline constexpr std::string_view k_driver_version = "driver.version";
inline constexpr std::string_view k_runtime_version = "runtime.version";
inline constexpr std::string_view k_environment = "env."; ///< followed by the variable's name
inline constexpr std::string_view k_unset = "(unset)";    ///< the value for an unset variable
inline constexpr std::string_view k_build_id = "code.build_id";
inline constexpr std::string_view k_binary_path = "binary.path";
inline constexpr std::string_view k_rank = "rank";
inline constexpr std::string_view k_model = "model.name";
inline constexpr std::string_view k_function = "function.name";
inline constexpr std::string_view k_format = "entry.format";
inline constexpr std::string_view k_config = "config.";             ///< followed by the key
inline constexpr std::string_view k_model_config = "config.model."; ///< followed by a key of the cache's model

/// True for facts that identify the function's code.
[[nodiscard]] constexpr bool is_of_code(std::string_view name) noexcept
{
    return name.starts_with("code.") || name.starts_with("program.");
}

/// True for versions, where callers can accept a newer value. All other facts must be equal.
[[nodiscard]] constexpr bool has_order(std::string_view name) noexcept
{
    return name == k_driver_version || name == k_runtime_version;
}

} // namespace warmgraph::cachefmt::fact
