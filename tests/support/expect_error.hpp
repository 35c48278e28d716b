// Matchers for Result<T> and its like: a failure prints the message.
#pragma once

#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warmgraph/base/error.hpp"

namespace warmgraph {

inline void PrintTo(const Error& error, std::ostream* out) { *out << to_string(error.code) << ": " << error.message; }

} // namespace warmgraph

namespace warmgraph::test {

/// EXPECT_TRUE(succeeded(store->publish(entry))). Of what is true or has an error().
template <class T>
[[nodiscard]] testing::AssertionResult succeeded(const T& result)
{
    if (result) return testing::AssertionSuccess();
    return testing::AssertionFailure() << to_string(result.error().code) << ": " << result.error().message;
}

/// EXPECT_TRUE(failed_with(store->publish(entry), ErrorCode::no_space, "no space"))
template <class T>
[[nodiscard]] testing::AssertionResult failed_with(const T& result, ErrorCode code, const std::string& text = "")
{
    if (result) return testing::AssertionFailure() << "succeeded, expected " << to_string(code);
    const Error& error = result.error();
    if (error.code == code && error.message.find(text) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << to_string(error.code) << ": " << error.message << "; expected "
                                       << to_string(code) << " with '" << text << "'";
}

} // namespace warmgraph::test
