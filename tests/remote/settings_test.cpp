// URLs of remote tiers.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include "expect_error.hpp"
#include "warmgraph/remote/settings.hpp"

namespace warmgraph::test::settings_test {
namespace {

using remote::Scheme;
using remote::Settings;

std::map<std::string, std::string> g_environment;
std::optional<std::string> environment(const char* name)
{
    const auto found = g_environment.find(name);
    return found == g_environment.end() ? std::nullopt : std::optional(found->second);
}

class RemoteSettings : public testing::Test {
protected:
    void TearDown() override { g_environment.clear(); }
    static Settings parse(std::string_view url) { return remote::parse(url, environment).value(); }
    static std::string why_not(std::string_view url)
    {
        const auto settings = remote::parse(url, environment);
        return settings ? "it is right" : settings.error().message;
    }
};

TEST_F(RemoteSettings, NameTheirPlace)
{
    const Settings redis = parse("redis://cache:7000/3?namespace=v7&read-only");
    EXPECT_EQ(redis.scheme, Scheme::redis);
    EXPECT_EQ(redis.host, "cache");
    EXPECT_EQ(redis.port, 7000);
    EXPECT_EQ(redis.database, 3U);
    EXPECT_EQ(redis.name_space, "v7/");
    EXPECT_TRUE(redis.read_only);
    EXPECT_FALSE(redis.allow_unsigned);
    EXPECT_EQ(redis.label, "redis://cache:7000/3");
    EXPECT_EQ(redis.connect_timeout, remote::milliseconds(100));
    EXPECT_EQ(parse("redis://[::1]:6379").host, "::1");
    EXPECT_EQ(parse("redis://[::1]:6379").label, "redis://[::1]:6379/0");
    EXPECT_EQ(parse("unix:///run/redis.sock?database=2").path, "/run/redis.sock");
    EXPECT_EQ(parse("unix:///run/redis.sock?database=2").database, 2U);
    const Settings http =
        parse("http://host/a/prefix/?connect-timeout=5&request-timeout=6&payload-timeout=7&ttl=8&max-bytes=2M");
    EXPECT_EQ(http.path, "/a/prefix");
    EXPECT_EQ(http.connect_timeout.count(), 5);
    EXPECT_EQ(http.header_timeout.count(), 6);
    EXPECT_EQ(http.payload_timeout.count(), 7);
    EXPECT_EQ(http.ttl.count(), 8);
    EXPECT_EQ(http.max_bytes, 2U << 20);
    EXPECT_EQ(http.layout, remote::Layout::names);
    EXPECT_EQ(parse("http://host?layout=bazel").layout, remote::Layout::bazel);
    EXPECT_EQ(parse("https://host").connect_timeout, remote::milliseconds(1000));
    EXPECT_EQ(parse("file:///mnt/shared?read-only=false").path, "/mnt/shared");
}

TEST_F(RemoteSettings, OfS3HaveABucketARegionAndAnEndpoint)
{
    const Settings plain = parse("s3://models/warmgraph?region=eu-1");
    EXPECT_EQ(plain.bucket, "models");
    EXPECT_EQ(plain.path, "/warmgraph");
    EXPECT_EQ(plain.region, "eu-1");
    EXPECT_FALSE(plain.path_style);
    EXPECT_EQ(plain.label, "s3://models/warmgraph");
    EXPECT_EQ(parse("s3://models").region, "us-east-1");
    g_environment = {{"AWS_REGION", "us-2"},
                     {"AWS_ENDPOINT_URL", "http://minio:9000"},
                     {"AWS_ACCESS_KEY_ID", "id"},
                     {"AWS_SECRET_ACCESS_KEY", "secret"},
                     {"AWS_SESSION_TOKEN", "token"}};
    const Settings usual = parse("s3://models");
    EXPECT_EQ(usual.region, "us-2");
    EXPECT_EQ(usual.endpoint, "http://minio:9000");
    EXPECT_TRUE(usual.path_style) << "the bucket's name has no host at an endpoint";
    EXPECT_EQ(usual.credentials.user, "id");
    EXPECT_EQ(usual.credentials.password, "secret");
    EXPECT_EQ(usual.credentials.token, "token");
    EXPECT_EQ(parse("s3://models?user=other&password=its").credentials.password, "its");
}

TEST_F(RemoteSettings, TakeCredentialsFromTheUrlAttributesAFileOrTheEnvironment)
{
    EXPECT_EQ(parse("redis://me:p%40ss@cache").credentials.password, "p@ss");
    EXPECT_EQ(parse("redis://me:p%40ss@cache").label, "redis://cache/0");
    EXPECT_EQ(parse("redis://:secret@cache").credentials.user, "");
    EXPECT_EQ(parse("http://host?token=abc%26").credentials.token, "abc&");
    g_environment = {{"WARMGRAPH_REMOTE_USER", "u"}, {"WARMGRAPH_REMOTE_PASSWORD", "p"}};
    EXPECT_EQ(parse("http://host").credentials.user, "u");
    EXPECT_EQ(parse("http://a:b@host").credentials.user, "a") << "the URL goes first";
    const std::string file = testing::TempDir() + "credentials";
    std::ofstream(file) << "# of the cache\nuser=us\npassword=a=b\n";
    ::chmod(file.c_str(), 0600);
    EXPECT_EQ(parse("redis://cache?credentials-file=" + file).credentials.password, "a=b");
    ::chmod(file.c_str(), 0640);
    EXPECT_TRUE(failed_with(remote::parse("redis://cache?credentials-file=" + file, environment),
                            ErrorCode::permission_denied, "chmod go="));
    std::ofstream(file) << "secret\n";
    ::chmod(file.c_str(), 0600);
    EXPECT_THAT(why_not("redis://cache?credentials-file=" + file),
                testing::AllOf(testing::HasSubstr("neither user="), testing::Not(testing::HasSubstr("secret"))));
    EXPECT_THAT(why_not("redis://cache?credentials-file=/nowhere"), testing::HasSubstr("cannot read credentials file"));
}

TEST_F(RemoteSettings, ThatAreWrongSayWhatWasExpected)
{
    for (const auto& [url, why] : std::initializer_list<std::pair<const char*, const char*>>{
             {"", "expected file, http, https, s3, redis, rediss or unix"},
             {"cache:6379", "it begins with no scheme"},
             {"ftp://host/x", "it begins with 'ftp'"},
             {"redis://", "the host is ''"},
             {"redis://a b", "the host is 'a b'"},
             {"redis://host:99999", "the port is 99999, expected at most 65535"},
             {"redis://host:x", "the port"},
             {"redis://host/db", "the database"},
             {"file://relative/path", "expected file:///path"},
             {"file:///", "expected an absolute one"},
             {"http://host/../x", "without '..'"},
             {"http://host/a b", "without '..', spaces"},
             {"http://host?colour=red", "unknown attribute 'colour', expected one of read-only"},
             {"http://host?ttl=soon", "ttl"},
             {"http://host?ttl", "ttl"},
             {"http://host?layout=flat", "layout is 'flat', expected names or bazel"},
             {"http://host?read-only=maybe", "read-only is 'maybe', expected no value, true or false"},
             {"http://host?namespace=a/b", "namespace is 'a/b'"},
             {"http://host?namespace=..", "namespace is '..'"},
             {"http://host?token=%4", "has a '%' without two hex digits"},
             {"http://u%zz@host", "has a '%' without two hex digits"}})
        EXPECT_THAT(why_not(url), testing::HasSubstr(why)) << url;
}

TEST_F(RemoteSettings, KeepSecretsOutOfMessages)
{
    for (const char* url : {"redis://me:geheim@host:99999", "ftp://me:geheim@host",
                            "http://host?password=geheim&colour=red", "http://me:geheim@host?token=geheim&ttl=x",
                            "me:geheim@host", "redis://me:geh/geheim@host", "redis://me:geheim/x@host"})
        EXPECT_THAT(why_not(url), testing::Not(testing::HasSubstr("geheim"))) << url;
    EXPECT_THAT(why_not("redis://me:geheim@host:99999"), testing::HasSubstr("remote 'redis://***@host:99999'"));
}

TEST_F(RemoteSettings, AreAListInTheEnvironment)
{
    const auto all = remote::parse_list(
        "s3://models/warmgraph?region=eu-1, redis://cache:6379/0?namespace=v7&read-only\n", environment);
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->size(), 2U);
    EXPECT_EQ((*all)[1].name_space, "v7/");
    EXPECT_TRUE(remote::parse_list("", environment)->empty());
    EXPECT_FALSE(remote::parse_list("redis://a,nonsense", environment));
}

} // namespace
} // namespace warmgraph::test::settings_test
