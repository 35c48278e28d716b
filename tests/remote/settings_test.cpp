// URLs of remote tiers.
#include <gtest/gtest.h>

#include "warmgraph/remote/settings.hpp"

namespace warmgraph::test::settings_test {
namespace {

TEST(RemoteSettings, NameTheirScheme) { EXPECT_EQ(remote::to_string(remote::Scheme::redis_socket), "unix"); }

} // namespace
} // namespace warmgraph::test::settings_test
