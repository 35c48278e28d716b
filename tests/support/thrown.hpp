// Turns exceptions of the library into values.
#pragma once

#include <optional>
#include <string>

#include "expect_error.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {

/// Runs f. Returns the code and the text of the Exception that f throws, or nullopt when f throws none.
template <class F>
std::optional<Exception> thrown_by(F&& f)
{
    try {
        f();
    } catch (const Exception& exception) {
        return exception;
    }
    return std::nullopt;
}

[[nodiscard]] inline std::string message_of(const std::optional<Exception>& thrown)
{
    return thrown ? thrown->what() : std::string();
}

/// Use it as EXPECT_TRUE(failed_with(thrown_by([&] { f(); }), ErrorCode::stale, "another shape")).
[[nodiscard]] inline testing::AssertionResult failed_with(const std::optional<Exception>& thrown, ErrorCode code,
                                                          const std::string& text = "")
{
    if (!thrown) return testing::AssertionFailure() << "threw nothing, expected " << to_string(code);
    const std::string what = thrown->what();
    if (thrown->code() == code && what.find(text) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << to_string(thrown->code()) << ": " << what << "; expected " << to_string(code)
                                       << " with '" << text << "'";
}

} // namespace warmgraph::test

namespace warmgraph {
using test::failed_with;
using test::message_of;
using test::thrown_by;
} // namespace warmgraph
