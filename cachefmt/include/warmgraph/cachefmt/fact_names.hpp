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
inline constexpr std::string_view k_model = "model.name";
inline constexpr std::string_view k_function = "function.name";
inline constexpr std::string_view k_format = "entry.format";
inline constexpr std::string_view k_config = "config.";             ///< with the key
inline constexpr std::string_view k_model_config = "config.model."; ///< of the cache's model, with the key

/// Is the code of a function known by it?
[[nodiscard]] constexpr bool is_of_code(std::string_view name) noexcept
{
    return name.starts_with("code.") || name.starts_with("program.");
}

/// Has its value an order? These are versions: a newer one is accepted where the caller says so, all others must be equal.
[[nodiscard]] constexpr bool has_order(std::string_view name) noexcept
{
    return name == k_driver_version || name == k_runtime_version;
}

} // namespace warmgraph::cachefmt::fact
