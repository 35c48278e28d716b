// A benchmark stops at the first error, because later measurements would be meaningless.
#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "warmgraph/base/error.hpp"

namespace warmgraph::bench {

/// Returns the value of `result`. Throws std::runtime_error with the error's message.
template <class T>
T checked(Result<T> result)
{
    if (!result) throw std::runtime_error(result.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

} // namespace warmgraph::bench
