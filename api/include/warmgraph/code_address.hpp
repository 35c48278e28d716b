// Where the code of a wrapped callable is: its binary's build id tells versions of it apart.
#pragma once

#include <type_traits>

#include "warmgraph/export.hpp"

namespace warmgraph::detail {

/// An address inside the binary that wraps an F. Hidden: a program's libraries would share one address otherwise, so
/// that one plugin's code would be told by another's build id.
template <class F>
[[nodiscard]] WARMGRAPH_LOCAL const void* address_of_wrapping() noexcept
{
    static const char anchor = 0;
    return &anchor;
}

/// The same, or where it is known better: the function that a pointer points to.
template <class F>
[[nodiscard]] WARMGRAPH_LOCAL const void* code_address(const F& callable) noexcept
{
    if constexpr (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>)
        return reinterpret_cast<const void*>(callable);
    else
        return address_of_wrapping<F>();
}

} // namespace warmgraph::detail
