// Checks for Result<T> and similar types. A failed check prints the error's message.
#pragma once

#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "matchers.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

inline void PrintTo(const Error& error, std::ostream* out) { *out << to_string(error.code) << ": " << error.message; }

} // namespace warmgraph

namespace warmgraph::test {

/// Use it as EXPECT_TRUE(succeeded(store->publish(entry))). It works for types that convert to bool and have an
/// error().
template <class T>
[[nodiscard]] testing::AssertionResult succeeded(const T& result)
{
    if (result) return testing::AssertionSuccess();
    return testing::AssertionFailure() << to_string(result.error().code) << ": " << result.error().message;
}

/// Use it as EXPECT_TRUE(failed_with(store->publish(entry), ErrorCode::no_space, "no space")).
template <class T>
[[nodiscard]] testing::AssertionResult failed_with(const T& result, ErrorCode code, const std::string& text = "")
{
    if (result) return testing::AssertionFailure() << "succeeded, expected " << to_string(code);
    const Error& error = result.error();
    if (error.code == code && error.message.find(text) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << to_string(error.code) << ": " << error.message << "; expected "
                                       << to_string(code) << " with '" << text << "'";
}

/// The text of the error; "" when there is no error.
template <class T>
[[nodiscard]] std::string message_of(const Result<T>& result)
{
    return result ? std::string() : result.error().message;
}

/// Returns the value, or throws the error. It is for steps without which a test cannot continue.
template <class T>
T take(Result<T> result)
{
    if (!result) throw std::runtime_error(std::string(to_string(result.error().code)) + ": " + result.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

} // namespace warmgraph::test

// Most tests are in the namespace of their component, in which names of the namespace test are not visible.
namespace warmgraph {
using test::failed_with;
using test::message_of;
using test::succeeded;
using test::take;
} // namespace warmgraph
