// The only skip that does not fail (refuse_skips.cpp): the test needs something that `./dev setup` cannot install, such
// as a second device.
#pragma once

#include <gtest/gtest.h>

namespace warmgraph::test {

inline constexpr const char* k_lacking = "lacking"; ///< the property of a test that was skipped in this way

} // namespace warmgraph::test

/// Ends the test, or its SetUp. The report contains `what` ("a second CUDA device").
#define WARMGRAPH_SKIP_LACKING(what)                                                                                   \
    do {                                                                                                               \
        testing::Test::RecordProperty(warmgraph::test::k_lacking, what);                                               \
        GTEST_SKIP() << "this machine lacks " << (what);                                                               \
    } while (false)
