// A benchmark stops at the first error: there is nothing to measure after it.
#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "warmgraph/base/error.hpp"

namespace warmgraph::bench {

/// What `result` holds. Throws std::runtime_error with the message of its error.
template <class T>
T checked(Result<T> result)
{
    if (!result) throw std::runtime_error(result.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

} // namespace warmgraph::bench
