// Not for users: the library uses Result inside and throws Exception outside; these two functions convert.
#pragma once

#include <utility>

#include "warmgraph/base/error.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

[[noreturn]] inline void raise(const Error& error) { throw Exception(error.code, error.message); }

template <class T>
T value_or_raise(Result<T> result)
{
    if (!result) raise(result.error());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

} // namespace warmgraph
