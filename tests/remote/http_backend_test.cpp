// HTTP and S3 as remote tiers, with real servers.
#include <thread>

#include <unistd.h>

#include "../store/tier_conformance.hpp"
#include "child_process.hpp"
#include "http_servers.hpp"
#include "log_lines.hpp"
#include "served_tier.hpp"
#include "warmgraph/remote/backends.hpp"
#include "warmgraph/store/store.hpp"

namespace warmgraph::test::http_backend_test {
namespace {

using remote::Scheme;
using remote::Settings;
using store::Name;
using store::PutMode;

/// The settings for the server at this port, with the right name and password.
Settings locked(const Nginx& nginx)
{
    Settings settings = nginx.settings(nginx.ports().locked);
    settings.credentials.user = Nginx::k_user;
    settings.credentials.password = Nginx::k_password;
    return settings;
}

std::unique_ptr<store::Tier> make_nginx(const fs::path& folder)
{
    auto nginx = std::make_unique<Nginx>(folder);
    const Settings settings = nginx->settings(nginx->ports().open);
    return std::make_unique<ServedTier<Nginx>>(std::move(nginx), settings);
}
std::unique_ptr<store::Tier> make_locked_nginx(const fs::path& folder)
{
    auto nginx = std::make_unique<Nginx>(folder);
    const Settings settings = locked(*nginx);
    return std::make_unique<ServedTier<Nginx>>(std::move(nginx), settings);
}
std::unique_ptr<store::Tier> make_nginx_with_folders(const fs::path& folder)
{
    auto nginx = std::make_unique<Nginx>(folder);
    const Settings settings = nginx->settings(nginx->ports().folders);
    return std::make_unique<ServedTier<Nginx>>(std::move(nginx), settings);
}
std::unique_ptr<store::Tier> make_s3(const fs::path& folder)
{
    auto server = std::make_unique<S3Server>(folder);
    const Settings settings = server->settings();
    return std::make_unique<ServedTier<S3Server>>(std::move(server), settings);
}

constexpr TierMaker k_served[]{{"nginx", make_nginx},
                               {"nginx_with_a_password", make_locked_nginx},
                               {"nginx_without_folders", make_nginx_with_folders},
                               {"s3", make_s3}};
INSTANTIATE_TEST_SUITE_P(Http, TierConformance, testing::ValuesIn(k_served),
                         [](const auto& tested) { return std::string(tested.param.name); });

class HttpBackend : public StoreTest {
protected:
    static std::unique_ptr<store::Tier> backend(const Settings& settings) { return take(remote::backend_of(settings)); }
    static Name image(std::string_view text) { return store::ImageName{sha256(as_bytes(text))}; }
    static std::string text_of(store::Tier& tier, const Name& name)
    {
        const auto found = take(tier.get(name, {1 << 20}));
        return found ? std::string(as_text(take(found->bytes))) : "none";
    }

    Nginx m_nginx{m_root / "nginx"};
};

TEST_F(HttpBackend, RefusesAWrongPasswordAndTellsNoSecret)
{
    Settings settings = locked(m_nginx);
    settings.credentials.password = "canary wrong";
    const LogLines lines;
    const auto tier = backend(settings);
    for (const std::string& message :
         {message_of(tier->get(image("a"), {100})), message_of(tier->put(image("a"), as_bytes("a"))),
          message_of(tier->list({})), message_of(tier->remove(image("a")))}) {
        EXPECT_THAT(message, HasSubstr("refuses with 401"));
        EXPECT_THAT(message, HasSubstr(settings.label));
        EXPECT_THAT(message, Not(HasSubstr("canary")));
    }
    EXPECT_TRUE(failed_with(tier->get(image("a"), {100}), ErrorCode::permission_denied, "check user, password"));
    EXPECT_THAT(lines.with("canary"), IsEmpty());
}

TEST_F(HttpBackend, SaysHowFarTheServersClockIsAhead)
{
    const Settings settings = m_nginx.settings(m_nginx.ports().open);
    const auto ahead = take(remote::clock_ahead(settings));
    ASSERT_TRUE(ahead);
    EXPECT_LE(std::abs(ahead->count()), 30) << "nginx runs on this machine";
    m_nginx.stop();
    EXPECT_TRUE(failed_with(remote::clock_ahead(settings), ErrorCode::io_failed, settings.label));
}

TEST_F(HttpBackend, NamesAServerThatDoesNotAnswerAndUsesItAgainOnceItDoes)
{
    Settings settings = m_nginx.settings(m_nginx.ports().open);
    const auto tier = backend(settings);
    take(tier->put(image("a"), as_bytes("a")));
    m_nginx.stop();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(failed_with(tier->get(image("a"), {100}), ErrorCode::io_failed, settings.label));
    EXPECT_TRUE(failed_with(tier->put(image("a"), as_bytes("a")), ErrorCode::io_failed));
    EXPECT_TRUE(failed_with(tier->list({}), ErrorCode::io_failed));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15))
        << "a refused connection is no timeout";
    ASSERT_TRUE(m_nginx.start());
    EXPECT_EQ(text_of(*tier, image("a")), "a");
}

TEST_F(HttpBackend, LivesThroughARestartBetweenTwoCalls)
{
    const auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    take(tier->put(image("a"), as_bytes("a")));
    m_nginx.stop(); // the tier's connection is dead, and it does not know yet
    ASSERT_TRUE(m_nginx.start());
    take(tier->put(image("b"), as_bytes("b")));
    EXPECT_EQ(text_of(*tier, image("a")), "a");
    EXPECT_EQ(text_of(*tier, image("b")), "b");
}

TEST_F(HttpBackend, TrustsOnlyCertificatesOfAcceptedAuthoritiesForThisHost)
{
    Settings settings = m_nginx.settings(m_nginx.ports().tls);
    settings.scheme = Scheme::https;
    EXPECT_TRUE(failed_with(backend(settings)->get(image("a"), {100}), ErrorCode::io_failed, "certificate"));
    ASSERT_EQ(::setenv("SSL_CERT_FILE", m_nginx.certificate().c_str(), 1), 0);
    const auto tier = backend(settings);
    EXPECT_TRUE(succeeded(tier->put(image("a"), as_bytes("a"))));
    EXPECT_EQ(text_of(*tier, image("a")), "a");
    settings.host = "localhost"; // the certificate is for 127.0.0.1
    EXPECT_TRUE(failed_with(backend(settings)->get(image("a"), {100}), ErrorCode::io_failed, "certificate"));
    ::unsetenv("SSL_CERT_FILE");
}

TEST_F(HttpBackend, ConnectsToNothingBeforeItsFirstCall)
{
    Settings settings = m_nginx.settings(free_port());
    settings.host = "no-such-host.invalid";
    EXPECT_TRUE(succeeded(remote::backend_of(settings)));
}

TEST_F(HttpBackend, ShowsTwoClientsTheSameObjects)
{
    const auto one = backend(m_nginx.settings(m_nginx.ports().open)), other = backend(locked(m_nginx));
    const Entry entry = make_entry(k_decode, 1), later = make_entry(k_decode, 2);
    take(store::Store(*one).publish(entry));
    EXPECT_EQ(take(store::Store(*other).entry(entry.header.key)), entry);
    take(store::Store(*other).publish(later));
    EXPECT_EQ(take(store::Store(*one).variants(k_decode)).size(), 2U);
    EXPECT_EQ(take(one->list({})).size(), 2U);
    take(one->remove(entry.header.key));
    EXPECT_FALSE(take(store::Store(*other).entry(entry.header.key)));
    EXPECT_EQ(take(other->list({.function = k_decode})).size(), 1U);
}

TEST_F(HttpBackend, KeepsNamespacesApart)
{
    Settings settings = m_nginx.settings(m_nginx.ports().open);
    const auto one = backend(settings);
    settings.name_space = "v8/";
    const auto other = backend(settings);
    take(one->put(image("a"), as_bytes("a")));
    EXPECT_EQ(text_of(*other, image("a")), "none");
    EXPECT_TRUE(fs::exists(m_nginx.root() / "caches/of a team/v7" / to_text(image("a"))));
}

TEST_F(HttpBackend, ReadsTheHeadersOfAFunctionInOneRequest)
{
    const auto writer = backend(m_nginx.settings(m_nginx.ports().open));
    for (int variant = 0; variant < 12; ++variant) take(store::Store(*writer).publish(make_entry(k_decode, variant)));
    const auto reader = backend(m_nginx.settings(m_nginx.ports().open));
    static_cast<void>(m_nginx.requests());
    const auto entries = take(reader->get_entries(k_decode, {32 * 1024, false}));
    EXPECT_THAT(m_nginx.requests(), ElementsAre(HasSubstr("GET /caches/of a team/v7/entries/")));
    ASSERT_EQ(entries.size(), 12U);
    EXPECT_TRUE(std::ranges::is_sorted(entries, {}, &store::StampedEntry::key));
    for (const auto& [key, found] : entries) {
        const auto stamp = take(reader->get(key, {0, false}))->stamp;
        EXPECT_EQ(take(found).stamp, stamp) << "or each header would be read again";
        EXPECT_TRUE(succeeded(cachefmt::decode_header(take(take(found).bytes), key)));
    }
    static_cast<void>(m_nginx.requests());
    EXPECT_EQ(take(store::Store(*reader).variants(k_decode)).size(), 12U);
    EXPECT_EQ(m_nginx.requests().size(), 1U);
}

TEST_F(HttpBackend, ReadsMoreOfAnEntryThanTheIndexHasFromTheEntry)
{
    const auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    const Entry entry = make_entry(k_decode);
    take(store::Store(*tier).publish(entry));
    const Bytes all = take(take(tier->get(entry.header.key, {1 << 20}))->bytes);
    const auto read = [&](store::ReadLimit extent) {
        const auto entries = take(tier->get_entries(k_decode, extent));
        EXPECT_EQ(entries.size(), 1U);
        return take(entries.front().found).bytes;
    };
    EXPECT_EQ(read({1 << 20}), all);
    EXPECT_EQ(take(read({.bytes = 10, .whole = false, .offset = all.size() - 5})).size(), 5U);
    EXPECT_EQ(take(read({.bytes = 4, .whole = false})).size(), 4U);
    EXPECT_TRUE(failed_with(read({100}), ErrorCode::corrupt, "at most 100"));
}

TEST_F(HttpBackend, FindsAnEntryWhoseIndexIsLostOrDamaged)
{
    const auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    const Entry entry = make_entry(k_decode);
    take(store::Store(*tier).publish(entry));
    const fs::path folder = m_nginx.root() / "caches/of a team/v7/entries";
    const fs::path index = folder / k_decode.model_info / k_decode.rank / k_decode.function / "index.1";
    ASSERT_TRUE(fs::exists(index));
    std::ofstream(index) << "no index";
    EXPECT_TRUE(failed_with(tier->list({.function = k_decode}), ErrorCode::corrupt, "magic"));
    EXPECT_EQ(take(store::Store(*tier).entry(entry.header.key)), entry);
    fs::remove(index);
    EXPECT_EQ(take(store::Store(*tier).entry(entry.header.key)), entry);
    EXPECT_THAT(take(tier->list({.function = k_decode})), IsEmpty());
    std::ofstream(index) << "no index";
    take(store::Store(*tier).publish(entry));
    EXPECT_THAT(take(tier->list({.function = k_decode})), ElementsAre(Name(entry.header.key))) << "it is made anew";
}

TEST_F(HttpBackend, SendsNoBytesOfAnImageThatIsThere)
{
    const auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    take(tier->put(image("a"), as_bytes("a"), PutMode::create_only));
    static_cast<void>(m_nginx.requests());
    take(tier->put(image("a"), as_bytes("a"), PutMode::create_only));
    EXPECT_THAT(m_nginx.requests(), ElementsAre(HasSubstr("HEAD ")));
}

TEST_F(HttpBackend, NamesALimitOfTheServer)
{
    const auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    EXPECT_TRUE(
        failed_with(tier->put(image("a"), Bytes((64 << 20) + 1)), ErrorCode::unsupported, "client_max_body_size"));
}

TEST_F(HttpBackend, CarriesMegabytesBothWays)
{
    const auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    Bytes bytes(48 << 20);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 13U);
    take(tier->put(image("a"), bytes));
    EXPECT_TRUE(take(take(tier->get(image("a"), {bytes.size()}))->bytes) == bytes);
}

TEST_F(HttpBackend, ServesManyThreads)
{
    const auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 12; ++i)
        threads.emplace_back([&, i] {
            const Entry entry = make_entry(k_decode, i);
            EXPECT_TRUE(succeeded(store::Store(*tier).publish(entry)));
            for (int j = 0; j < 20; ++j) EXPECT_EQ(store::Store(*tier).entry(entry.header.key).value(), entry);
        });
    threads.clear();
    EXPECT_EQ(take(tier->list({.function = k_decode})).size(), 12U) << "one process loses no name";
}

TEST_F(HttpBackend, ServesAChildAfterAForkBesideItsParent)
{
    auto tier = backend(m_nginx.settings(m_nginx.ports().open));
    take(tier->put(image("a"), as_bytes("a")));
    ChildProcess child([&] {
        for (int i = 0; i < 50; ++i)
            if (text_of(*tier, image("a")) != "a") return 1;
        const auto put = tier->put(image("b"), as_bytes("b"));
        tier.reset();
        return put ? 0 : 2;
    });
    for (int i = 0; i < 50; ++i) EXPECT_EQ(text_of(*tier, image("a")), "a");
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(text_of(*tier, image("b")), "b");
}

TEST_F(HttpBackend, RefusesSettingsThatAreNoUrlOrHeader)
{
    Settings settings = m_nginx.settings(80);
    settings.host = "evil/path";
    EXPECT_TRUE(failed_with(remote::backend_of(settings), ErrorCode::invalid_argument, "host"));
    settings = m_nginx.settings(80);
    settings.credentials.token = "canary\r\nX-Evil: 1";
    const auto refused = remote::backend_of(settings);
    EXPECT_TRUE(failed_with(refused, ErrorCode::invalid_argument, "token has a control character"));
    EXPECT_THAT(message_of(refused), Not(HasSubstr("canary")));
    settings = patient(Scheme::s3);
    EXPECT_TRUE(failed_with(remote::backend_of(settings), ErrorCode::invalid_argument, "bucket"));
    settings.bucket = "models";
    settings.endpoint = "http://user:canary@host/x";
    EXPECT_TRUE(failed_with(remote::backend_of(settings), ErrorCode::invalid_argument, "endpoint"));
    EXPECT_THAT(message_of(remote::backend_of(settings)), Not(HasSubstr("canary")));
}

std::unique_ptr<store::Tier> backend_of_url(const std::string& url)
{
    const auto settings = take(remote::parse(url + "&connect-timeout=20000&request-timeout=20000",
                                             [](const char*) -> std::optional<std::string> { return std::nullopt; }));
    return take(remote::backend_of(settings));
}

TEST_F(HttpBackend, TakesItsUrl)
{
    const auto tier = backend_of_url(fmt::format(
        "http://warm:canary%20p%40ss%2Fw%C3%B6rd@127.0.0.1:{}/of%20a%20team?namespace=v7", m_nginx.ports().locked));
    take(tier->put(image("a"), as_bytes("a")));
    EXPECT_EQ(text_of(*tier, image("a")), "a");
    EXPECT_TRUE(fs::exists(m_nginx.root() / "of a team/v7" / to_text(image("a"))));
}

class S3Backend : public StoreTest {};

TEST_F(S3Backend, TakesItsUrl)
{
    const S3Server server(m_root / "s3");
    const auto tier =
        backend_of_url(fmt::format("s3://{}:canary%2Fsecret%2Bkey@models/ci?endpoint=http://127.0.0.1:{}&namespace=v7",
                                   S3Server::k_key, server.port()));
    const Name name = store::ImageName{};
    take(tier->put(name, as_bytes("a")));
    EXPECT_THAT(server.requests(), HasSubstr("PUT /models/ci/v7/" + to_text(name) + " 200"));
}

TEST_F(S3Backend, RefusesAWrongSecretAndTellsNone)
{
    const S3Server server(m_root / "s3");
    Settings settings = server.settings();
    settings.credentials.password = "canary/wrong";
    const auto tier = take(remote::backend_of(settings));
    const Name name = store::ImageName{};
    EXPECT_TRUE(failed_with(tier->get(name, {100}), ErrorCode::permission_denied, "SignatureDoesNotMatch"));
    EXPECT_TRUE(failed_with(tier->put(name, as_bytes("a")), ErrorCode::permission_denied, settings.label));
    EXPECT_THAT(message_of(tier->get(name, {100})), Not(HasSubstr("canary")));
    settings.credentials.user = "AKIDUNKNOWN";
    EXPECT_TRUE(failed_with(take(remote::backend_of(settings))->get(name, {100}), ErrorCode::permission_denied,
                            "InvalidAccessKeyId"));
    settings.credentials = {};
    EXPECT_TRUE(failed_with(take(remote::backend_of(settings))->get(name, {100}), ErrorCode::permission_denied,
                            "AccessDenied"));
}

TEST_F(S3Backend, SignsTheSessionToken)
{
    const S3Server server(m_root / "s3", "canary-token==");
    Settings settings = server.settings();
    const Name name = store::ImageName{};
    EXPECT_TRUE(failed_with(take(remote::backend_of(settings))->get(name, {100}), ErrorCode::permission_denied));
    settings.credentials.token = "canary-token==";
    const auto tier = take(remote::backend_of(settings));
    take(tier->put(name, as_bytes("a")));
    EXPECT_EQ(as_text(take(take(tier->get(name, {100}))->bytes)), "a");
}

TEST_F(S3Backend, PutsTheNameBelowBucketAndPrefix)
{
    const S3Server server(m_root / "s3");
    const auto tier = take(remote::backend_of(server.settings()));
    const Name name = store::ImageName{};
    take(tier->put(name, as_bytes("a")));
    EXPECT_THAT(server.requests(), HasSubstr("PUT /models/warm%20graph/ci/" + to_text(name) + " 200"));
}

TEST_F(S3Backend, LosesNoNameOfTwoClientsThatPutAtOnce)
{
    const S3Server server(m_root / "s3");
    std::vector<std::jthread> clients;
    for (int client = 0; client < 2; ++client)
        clients.emplace_back([&, client] {
            const auto tier = take(remote::backend_of(server.settings()));
            for (int i = 0; i < 10; ++i)
                EXPECT_TRUE(succeeded(store::Store(*tier).publish(make_entry(k_decode, client * 10 + i))));
        });
    clients.clear();
    const auto tier = take(remote::backend_of(server.settings()));
    for (int i = 0; i < 20; ++i) {
        const Entry entry = make_entry(k_decode, i);
        EXPECT_EQ(take(store::Store(*tier).entry(entry.header.key)), entry) << "by its name in any case";
    }
    EXPECT_EQ(take(tier->list({.function = k_decode})).size(), 20U);
}

} // namespace
} // namespace warmgraph::test::http_backend_test
