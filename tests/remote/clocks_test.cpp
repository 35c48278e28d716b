// The time that a store tells.
#include <gtest/gtest.h>

#include "clocks.hpp"

namespace warmgraph::test::clocks_test {
namespace {

using remote::time_of_date;

TEST(RemoteClocks, ReadTheDateOfHttp)
{
    const auto time = time_of_date("Tue, 01 Dec 2026 07:41:44 GMT");
    ASSERT_TRUE(time);
    EXPECT_EQ(time->time_since_epoch().count(), 1'796'110'904);
    EXPECT_EQ(time_of_date("Thu, 01 Jan 1970 00:00:00 GMT")->time_since_epoch().count(), 0);
    for (const char* date :
         {"", "Tuesday, 01-Dec-26 07:41:44 GMT", "Tue, 31 Feb 2026 07:41:44 GMT", "Tue, 01 anF 2026 07:41:44 GMT",
          "Tue, 01 Dec 2026 27:41:44 GMT", "Tue, 01 Dec 2026 07:41:44 GMT and more", "Tue, 01 Dec 2026 07:41:44 CET"})
        EXPECT_FALSE(time_of_date(date)) << date;
}

} // namespace
} // namespace warmgraph::test::clocks_test
