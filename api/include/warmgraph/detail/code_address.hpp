// Not for users: where the code of a wrapped callable is. The build id of its binary tells versions of the code apart.
#pragma once

#include <type_traits>

#include "warmgraph/export.hpp"

namespace warmgraph::detail {

/// Returns an address inside the binary that wraps an F. The address belongs to a hidden symbol: otherwise the
/// libraries of a program would share one address, and one plugin's code would be known by the build id of another.
template <class F>
[[nodiscard]] WARMGRAPH_LOCAL const void* address_of_wrapping() noexcept
{
    static const char anchor = 0;
    return &anchor;
}

/// Returns the address of the function that a function pointer points to, and otherwise address_of_wrapping().
template <class F>
[[nodiscard]] WARMGRAPH_LOCAL const void* code_address(const F& callable) noexcept
{
    if constexpr (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>)
        return reinterpret_cast<const void*>(callable);
    else
        return address_of_wrapping<F>();
}

} // namespace warmgraph::detail
