// Skips a test because it needs something that `./dev setup` cannot install, such as a second device. All other skips
// count as failures (refuse_skips.cpp).
#pragma once

#include <gtest/gtest.h>

namespace warmgraph::test {

inline constexpr const char* k_lacking = "lacking"; ///< the property that a test gets when it is skipped in this way

} // namespace warmgraph::test

/// Ends the test, or its SetUp, as skipped. `what` is written into the report ("a second CUDA device").
#define WARMGRAPH_SKIP_LACKING(what)                                                                                   \
    do {                                                                                                               \
        testing::Test::RecordProperty(warmgraph::test::k_lacking, what);                                               \
        GTEST_SKIP() << "this machine lacks " << (what);                                                               \
    } while (false)
