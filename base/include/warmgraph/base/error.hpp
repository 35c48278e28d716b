// The one error type of the library. A miss is an empty optional; a failure is an Error.
// Internal header: C++23.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "warmgraph/base/error_code.hpp"

namespace warmgraph {

/// A failure. The code says what the caller can do. The message says what happened, the expected and the found value,
/// and the cure (lower case, no full stop).
struct Error {
    ErrorCode code;
    std::string message;
};

template <class T>
using Result = std::expected<T, Error>;

/// Makes a failure: `return fail(ErrorCode::corrupt, "entry is {} bytes, expected {}", n, m);`
template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> text, Args&&... args)
{
    return std::unexpected(Error{code, fmt::format(text, std::forward<Args>(args)...)});
}

/// Puts the operation that failed in front of the message: "publish decode: no space left".
[[nodiscard]] inline std::unexpected<Error> within(std::string_view doing, Error error)
{
    error.message = fmt::format("{}: {}", doing, error.message);
    return std::unexpected(std::move(error));
}

} // namespace warmgraph
