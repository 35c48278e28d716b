// The URLs of objects on HTTP and S3 servers.
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "http/address.hpp"

namespace warmgraph::test::address_test {
namespace {

using remote::http::address_of;
using remote::Scheme;
using remote::Settings;

Settings s3()
{
    Settings settings;
    settings.scheme = Scheme::s3;
    settings.bucket = "models";
    settings.path = "warmgraph";
    settings.region = "eu-central-1";
    return settings;
}
std::string url_of(const Settings& settings, std::string_view name = "images/a")
{
    return take(address_of(settings)).url_of(name);
}

TEST(RemoteAddress, IsAUrlOfHttp)
{
    Settings settings;
    settings.scheme = Scheme::http;
    settings.host = "cache";
    EXPECT_EQ(url_of(settings), "http://cache/images/a");
    settings.scheme = Scheme::https;
    settings.port = 8443;
    settings.path = "/of%20a team/100%/"; // as in a URL, and with what a URL should not have
    settings.name_space = "v7/";
    EXPECT_EQ(url_of(settings), "https://cache:8443/of%20a%20team/100%25/v7/images/a");
    settings.name_space = "v%20-";
    EXPECT_EQ(url_of(settings), "https://cache:8443/of%20a%20team/100%25/v%2520-images/a") << "no part of a URL";
    settings.host = "::1";
    settings.path = "/?x=1#y";
    settings.name_space = "";
    EXPECT_EQ(url_of(settings), "https://[::1]:8443/%3Fx%3D1%23y/images/a");
}

TEST(RemoteAddress, IsADigestForBazelsServers)
{
    Settings settings;
    settings.scheme = Scheme::http;
    settings.host = "cache";
    settings.path = "/team";
    settings.name_space = "v7/";
    settings.layout = remote::Layout::bazel;
    EXPECT_EQ(url_of(settings), "http://cache/team/ac/" + to_hex(sha256(as_bytes("v7/images/a"))));
}

TEST(RemoteAddress, IsAUrlOfS3)
{
    Settings settings = s3();
    EXPECT_EQ(url_of(settings), "https://models.s3.eu-central-1.amazonaws.com/warmgraph/images/a");
    settings.path_style = true;
    EXPECT_EQ(url_of(settings), "https://s3.eu-central-1.amazonaws.com/models/warmgraph/images/a");
    settings.path_style = false;
    settings.bucket = "models.example";
    EXPECT_EQ(url_of(settings), "https://s3.eu-central-1.amazonaws.com/models.example/warmgraph/images/a")
        << "Amazon's certificate is for names without a dot";
    settings.endpoint = "http://127.0.0.1:9000/";
    settings.path = "";
    EXPECT_EQ(url_of(settings), "http://127.0.0.1:9000/models.example/images/a");
}

TEST(RemoteAddress, SignsWhatHasAKey)
{
    Settings settings = s3();
    EXPECT_EQ(take(address_of(settings)).signing, "") << "a public bucket";
    settings.credentials.user = "AKID";
    EXPECT_EQ(take(address_of(settings)).signing, "aws:amz:eu-central-1:s3");
    settings.region = "eu:central";
    EXPECT_TRUE(failed_with(address_of(settings), ErrorCode::invalid_argument, "region"));
}

} // namespace
} // namespace warmgraph::test::address_test
