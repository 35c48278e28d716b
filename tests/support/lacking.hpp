// The one kind of skip that does not fail (refuse_skips.cpp): for want of what `./dev setup` cannot install, such as a second
// device.
#pragma once

#include <gtest/gtest.h>

namespace warmgraph::test {

inline constexpr const char* k_lacking = "lacking"; ///< the property of a test that was skipped so

} // namespace warmgraph::test

/// Ends the test, or its SetUp. `what` ("a second CUDA device") is in the report.
#define WARMGRAPH_SKIP_LACKING(what)                                                                                   \
    do {                                                                                                               \
        testing::Test::RecordProperty(warmgraph::test::k_lacking, what);                                               \
        GTEST_SKIP() << "this machine lacks " << (what);                                                               \
    } while (false)
