// The Redis backend with the distribution's redis-server.
#include <sys/wait.h>

#include "../store/tier_conformance.hpp"
#include "child_process.hpp"
#include "redis_server.hpp"
#include "warmgraph/store/store.hpp"

namespace warmgraph::test::redis_backend_test {
namespace {

using namespace std::chrono_literals;
using remote::Settings;
using store::ReadLimit;
using Access = RedisServer::Access;
using Clock = std::chrono::steady_clock;

constexpr const char* k_password = "correct horse battery";

std::unique_ptr<store::Tier> tier_of(const Settings& settings) { return take(remote::backend_of(settings)); }

/// A server for all tests of this program, and a namespace for each test.
template <class... Options>
RedisServer& shared_server(Options... options)
{
    static RedisServer server(options...);
    return server;
}

std::unique_ptr<store::Tier> in_a_namespace(Settings settings, const fs::path& folder)
{
    settings.name_space = folder.string() + "/";
    return tier_of(settings);
}

std::unique_ptr<store::Tier> over_tcp(const fs::path& folder)
{
    return in_a_namespace(shared_server().settings(), folder);
}

std::unique_ptr<store::Tier> over_a_socket(const fs::path& folder)
{
    return in_a_namespace(shared_server().socket_settings(), folder);
}

std::unique_ptr<store::Tier> with_a_password(const fs::path& folder)
{
    static RedisServer server({"--requirepass", k_password});
    Settings settings = server.settings();
    settings.credentials.password = k_password;
    settings.database = 3;
    return in_a_namespace(settings, folder);
}

std::unique_ptr<store::Tier> with_tls(const fs::path& folder)
{
    static RedisServer server({}, Access::tls);
    ::setenv("SSL_CERT_FILE", server.trusted().c_str(), 1);
    return in_a_namespace(server.settings(), folder);
}

constexpr TierMaker k_kinds[]{
    {"tcp", over_tcp}, {"socket", over_a_socket}, {"password", with_a_password}, {"tls", with_tls}};
INSTANTIATE_TEST_SUITE_P(Redis, TierConformance, testing::ValuesIn(k_kinds),
                         [](const auto& tested) { return std::string(tested.param.name); });

store::Name image(std::string_view text) { return store::ImageName{sha256(as_bytes(text))}; }
store::Name entry(std::string_view of) { return EntryKey{k_decode, sha256(as_bytes(of))}; }

/// The object's text; "none", or "failed: <code>".
std::string content_of(store::Tier& tier, const store::Name& name, std::uint64_t most = 1 << 20)
{
    const auto found = tier.get(name, {most});
    if (!found) return "failed: " + std::string(to_string(found.error().code));
    if (!*found) return "none";
    return (*found)->bytes ? std::string(as_text(*(*found)->bytes)) : "corrupt: " + (*found)->bytes.error().message;
}

bool put(store::Tier& tier, const store::Name& name, std::string_view text)
{
    return tier.put(name, as_bytes(text)).has_value();
}

class RedisBackend : public StoreTest {};

TEST_F(RedisBackend, SaysHowFarTheServersClockIsAhead)
{
    RedisServer server;
    const auto ahead = take(remote::clock_ahead(server.settings()));
    ASSERT_TRUE(ahead);
    EXPECT_LE(std::abs(ahead->count()), 30) << "the server runs on this machine";
    server.kill();
    EXPECT_TRUE(failed_with(remote::clock_ahead(server.settings()), ErrorCode::io_failed));
}

// --- Objects

TEST_F(RedisBackend, ReadsTheHeadersOfAllVariantsAtOnce)
{
    const RedisServer server;
    const auto tier = tier_of(server.settings());
    store::Store store(*tier);
    std::vector<Entry> entries;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(succeeded(store.publish(entries.emplace_back(make_entry(k_decode, i)))));
    Entry large = make_entry(k_decode, 20);
    large.graph.nodes = std::vector<cachefmt::Node>(5000, cachefmt::FillNode{{}, Bytes(4), 1024});
    for (std::size_t i = 0; i < large.graph.nodes.size(); ++i)
        std::get<cachefmt::FillNode>(large.graph.nodes[i]).pattern[i % 4] = std::byte(i);
    large.header.info.node_count = 5000;
    ASSERT_TRUE(succeeded(store.publish(entries.emplace_back(large))));
    ASSERT_TRUE(succeeded(store.publish(make_entry(k_prompt))));

    const auto found = take(tier->get_entries(k_decode, {32 * 1024, false}));
    ASSERT_EQ(found.size(), entries.size());
    EXPECT_TRUE(std::ranges::is_sorted(found, {}, &store::StampedEntry::key));
    for (const Entry& one : entries) {
        const auto same = std::ranges::find(found, one.header.key, &store::StampedEntry::key);
        ASSERT_NE(same, found.end());
        const store::StampedBytes& head = *same->found;
        EXPECT_EQ(cachefmt::decode_header(*head.bytes, one.header.key).value(), one.header);
        EXPECT_EQ(head.stamp, (*tier->get(one.header.key, {0, false}))->stamp) << "of the whole entry";
    }
    EXPECT_EQ(store.variants(k_decode).value().size(), entries.size());
    for (const auto& [key, only_stamp] : take(tier->get_entries(k_decode, {0, false})))
        EXPECT_TRUE(only_stamp->bytes->empty() && only_stamp->stamp.size > 0);
    for (const auto& [key, whole] : take(tier->get_entries(k_decode, {1 << 24})))
        EXPECT_EQ(whole->bytes->size(), whole->stamp.size) << "more than the head is fetched from the entry";
    for (const auto& [key, whole] : take(tier->get_entries(k_decode, {10})))
        EXPECT_TRUE(failed_with(whole->bytes, ErrorCode::corrupt, "at most 10"));
}

TEST_F(RedisBackend, AnEntryWithoutAHeaderHasAHeadToo)
{
    const RedisServer server;
    const auto tier = tier_of(server.settings());
    const std::string text(10'000, 'x');
    ASSERT_TRUE(put(*tier, entry("a"), text));
    const auto found = take(tier->get_entries(k_decode, {32 * 1024, false}));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(as_text(*found[0].found->bytes), text) << "the head does not suffice";
}

TEST_F(RedisBackend, ACreatedEntryHasItsOwnHead)
{
    const RedisServer server;
    const auto tier = tier_of(server.settings());
    ASSERT_TRUE(put(*tier, entry("a"), "old one"));
    run_program({"redis-cli", "-p", std::to_string(server.settings().port), "DEL", store::to_text(entry("a"))});
    EXPECT_EQ(content_of(*tier, entry("a")), "none") << "evicted, and its head is not";
    for (const char* text : {"new", "and newer"})
        ASSERT_TRUE(succeeded(tier->put(entry("a"), as_bytes(text), store::PutMode::create_only)));
    const auto found = take(tier->get_entries(k_decode, {100, false}));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(as_text(*found[0].found->bytes), "new");
}

TEST_F(RedisBackend, AValueOfAnotherTypeIsCorrupt)
{
    const RedisServer server;
    const auto tier = tier_of(server.settings());
    run_program({"redis-cli", "-p", std::to_string(server.settings().port), "RPUSH", store::to_text(image("a")), "x"});
    for (const ReadLimit& extent : {ReadLimit{100}, ReadLimit{0, false}}) {
        const auto found = take(tier->get(image("a"), extent));
        ASSERT_TRUE(found);
        EXPECT_TRUE(failed_with(found->bytes, ErrorCode::corrupt, "WRONGTYPE"));
    }
    ASSERT_TRUE(put(*tier, image("a"), "text")) << "SET replaces any type";
    EXPECT_EQ(content_of(*tier, image("a")), "text");
}

TEST_F(RedisBackend, ListsThousandsOfNames)
{
    const RedisServer server;
    const auto tier = tier_of(server.settings());
    std::vector<store::Name> names;
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(put(*tier, names.emplace_back(image(std::to_string(i))), "x"));
    std::ranges::sort(names);
    EXPECT_EQ(take(tier->list({.kind = store::ArtifactKind::images})), names);
}

TEST_F(RedisBackend, NamespacesDoNotSeeEachOther)
{
    const RedisServer server;
    Settings settings = server.settings();
    const auto one = tier_of(settings);
    settings.name_space = "v7/";
    const auto other = tier_of(settings);
    ASSERT_TRUE(put(*one, entry("a"), "one"));
    EXPECT_EQ(content_of(*other, entry("a")), "none");
    EXPECT_TRUE(take(other->list({})).empty());
    ASSERT_TRUE(put(*other, entry("a"), "other"));
    EXPECT_EQ(content_of(*one, entry("a")), "one");
}

TEST_F(RedisBackend, ObjectsEndWithTheirTimeToLive)
{
    const RedisServer server;
    Settings settings = server.settings();
    const auto forever = tier_of(settings);
    settings.ttl = 1s;
    const auto tier = tier_of(settings);
    ASSERT_TRUE(put(*tier, entry("a"), "text"));
    ASSERT_TRUE(succeeded(tier->put(image("a"), as_bytes("text"), store::PutMode::create_only)));
    ASSERT_TRUE(put(*forever, image("b"), "text"));
    const auto is_gone = [&](const store::Name& name) { return content_of(*tier, name) == "none"; };
    for (const auto until = Clock::now() + 60s; Clock::now() < until && !(is_gone(entry("a")) && is_gone(image("a")));)
        std::this_thread::sleep_for(50ms);
    EXPECT_EQ(content_of(*tier, entry("a")), "none");
    EXPECT_EQ(content_of(*tier, image("a")), "none");
    EXPECT_TRUE(take(tier->get_entries(k_decode, {100, false})).empty());
    EXPECT_EQ(content_of(*tier, image("b")), "text");
}

// --- Access

TEST_F(RedisBackend, AWrongPasswordIsRefusedAndNotShown)
{
    const RedisServer server({"--requirepass", k_password});
    Settings settings = server.settings();
    EXPECT_TRUE(failed_with(tier_of(settings)->get(image("a"), {10}), ErrorCode::permission_denied, settings.label));
    for (const char* user : {"", "somebody"}) {
        settings.credentials.user = user;
        settings.credentials.password = "wrong-secret";
        const auto found = tier_of(settings)->get(image("a"), {10});
        ASSERT_TRUE(failed_with(found, ErrorCode::permission_denied, "WRONGPASS"));
        EXPECT_EQ(found.error().message.find("wrong-secret"), std::string::npos) << found.error().message;
    }
    settings.credentials.user = "default";
    settings.credentials.password = k_password;
    EXPECT_EQ(content_of(*tier_of(settings), image("a")), "none");
    settings.database = 99;
    EXPECT_TRUE(failed_with(tier_of(settings)->get(image("a"), {10}), ErrorCode::io_failed, "database"));
}

TEST_F(RedisBackend, AUserWhoMayOnlyReadCannotPut)
{
    const RedisServer server({"--user", "reader", "on", ">secret", "~*", "+@read", "+@transaction", "+@connection"});
    ASSERT_TRUE(put(*tier_of(server.settings()), image("a"), "text"));
    Settings settings = server.settings();
    settings.credentials.user = "reader";
    settings.credentials.password = "secret";
    const auto tier = tier_of(settings);
    EXPECT_TRUE(failed_with(tier->put(image("b"), as_bytes("x")), ErrorCode::permission_denied, "NOPERM"));
    EXPECT_EQ(content_of(*tier, image("a")), "text");
}

TEST_F(RedisBackend, TrustsACertificateForThisHostAlone)
{
    const RedisServer server({}, Access::tls);
    Settings settings = server.settings();
    ::setenv("SSL_CERT_FILE", server.untrusted().c_str(), 1);
    EXPECT_TRUE(failed_with(tier_of(settings)->get(image("a"), {10}), ErrorCode::io_failed, "certificate"));
    ::setenv("SSL_CERT_FILE", server.trusted().c_str(), 1);
    const auto tier = tier_of(settings);
    const std::string large(5 << 20, 'x');
    ASSERT_TRUE(put(*tier, image("a"), large));
    EXPECT_EQ(content_of(*tier, image("a"), 8 << 20), large);
    settings.host = "localhost";
    EXPECT_TRUE(failed_with(tier_of(settings)->get(image("a"), {10}), ErrorCode::io_failed, "ostname mismatch"));
    settings.scheme = remote::Scheme::redis;
    settings.header_timeout = 500ms;
    EXPECT_FALSE(tier_of(settings)->get(image("a"), {10})) << "the server takes TLS alone";
    const RedisServer plain;
    settings = plain.settings();
    settings.scheme = remote::Scheme::rediss;
    settings.header_timeout = 500ms; // redis-server waits for the end of a line
    EXPECT_TRUE(failed_with(tier_of(settings)->get(image("a"), {10}), ErrorCode::io_failed));
}

// --- Memory

TEST_F(RedisBackend, AFullServerHasNoSpace)
{
    const RedisServer server({"--maxmemory", "2mb", "--maxmemory-policy", "noeviction"});
    const auto tier = tier_of(server.settings());
    ASSERT_TRUE(put(*tier, image("small"), "text"));
    const Bytes large(100'000);
    int count = 0;
    while (count < 100 && tier->put(image(std::to_string(count)), large)) ++count;
    EXPECT_TRUE(failed_with(tier->put(image("b"), large), ErrorCode::no_space, "OOM"));
    EXPECT_EQ(content_of(*tier, image("small")), "text") << "what is there can be read";
    for (int i = 0; i < count; ++i) ASSERT_TRUE(succeeded(tier->remove(image(std::to_string(i)))));
    EXPECT_TRUE(put(*tier, image("b"), "text"));
}

TEST_F(RedisBackend, EvictedObjectsAreMissing)
{
    const RedisServer server({"--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"});
    const auto tier = tier_of(server.settings());
    constexpr int k_count = 200;
    const std::string text(64 * 1024, 'x');
    for (int i = 0; i < k_count; ++i) ASSERT_TRUE(put(*tier, image(std::to_string(i)), text));
    int there = 0;
    for (int i = 0; i < k_count; ++i) {
        const std::string found = content_of(*tier, image(std::to_string(i)));
        ASSERT_TRUE(found == "none" || found == text) << found.substr(0, 100);
        if (found == text) ++there;
    }
    EXPECT_GT(there, 0);
    EXPECT_LT(there, k_count);
    EXPECT_TRUE(take(tier->list({.kind = store::ArtifactKind::images})).size() <= k_count);
    EXPECT_TRUE(put(*tier, image("new"), "text"));
    EXPECT_EQ(content_of(*tier, image("new")), "text");
}

// --- Connections

TEST_F(RedisBackend, GoesOnAfterARestart)
{
    RedisServer server;
    const auto tier = tier_of(server.settings());
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(put(*tier, image("a"), "text"));
        EXPECT_EQ(content_of(*tier, image("a")), "text");
        server.restart();
        EXPECT_EQ(content_of(*tier, image("a")), "none");
    }
}

TEST_F(RedisBackend, GoesOnAfterTheServerClosedAnIdleConnection)
{
    const RedisServer server;
    const auto tier = tier_of(server.settings());
    ASSERT_TRUE(put(*tier, image("a"), "text"));
    for (int i = 0; i < 20; ++i) {
        run_program({"redis-cli", "-p", std::to_string(server.settings().port), "CLIENT", "KILL", "TYPE", "normal"});
        EXPECT_EQ(content_of(*tier, image("a")), "text");
    }
}

TEST_F(RedisBackend, AChildHasItsOwnConnections)
{
    const RedisServer server;
    const auto tier = tier_of(server.settings());
    const std::string texts[]{std::string(3000, 'x'), std::string(5000, 'y')};
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(put(*tier, image(texts[i]), texts[i]));
    const auto reads = [&](int which) {
        for (int i = 0; i < 200; ++i)
            if (content_of(*tier, image(texts[which])) != texts[which]) return 1;
        return 0;
    };
    ChildProcess first([&] { return reads(0); });
    ChildProcess second([&] { return reads(1); });
    EXPECT_EQ(reads(1), 0);
    EXPECT_EQ(first.wait(), 0);
    EXPECT_EQ(second.wait(), 0);
    EXPECT_EQ(reads(0), 0) << "the children closed nothing of the parent's";
}

TEST_F(RedisBackend, AChildEndsNoTlsSessionOfItsParent)
{
    const RedisServer server({}, Access::tls);
    ::setenv("SSL_CERT_FILE", server.trusted().c_str(), 1);
    const auto tier = tier_of(server.settings());
    ASSERT_TRUE(put(*tier, image("a"), "text"));
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(ChildProcess([&] { return content_of(*tier, image("a")) == "text" ? 0 : 1; }).wait(), 0);
        EXPECT_EQ(content_of(*tier, image("a")), "text");
    }
}

TEST_F(RedisBackend, ADeadServerFails)
{
    RedisServer server;
    Settings settings = server.settings();
    const auto tier = tier_of(settings);
    ASSERT_TRUE(put(*tier, entry("a"), "text"));
    server.kill();
    const auto start = Clock::now();
    EXPECT_TRUE(failed_with(tier->get(entry("a"), {100}), ErrorCode::io_failed, settings.label));
    EXPECT_TRUE(failed_with(tier->put(entry("a"), as_bytes("x")), ErrorCode::io_failed, settings.label));
    EXPECT_TRUE(failed_with(tier->remove(entry("a")), ErrorCode::io_failed, settings.label));
    EXPECT_TRUE(failed_with(tier->list({}), ErrorCode::io_failed, settings.label));
    EXPECT_TRUE(failed_with(tier->get_entries(k_decode, {100, false}), ErrorCode::io_failed, settings.label));
    EXPECT_TRUE(failed_with(tier_of(server.socket_settings())->get(entry("a"), {100}), ErrorCode::io_failed));
    settings.host = "a-host-that-does-not-exist.invalid";
    settings.connect_timeout = 2s;
    EXPECT_TRUE(failed_with(tier_of(settings)->get(entry("a"), {100}), ErrorCode::io_failed, settings.host));
    EXPECT_LT(Clock::now() - start, 20s);
}

TEST_F(RedisBackend, AStoppedServerIsGivenUp)
{
    const RedisServer server;
    Settings settings = server.settings();
    settings.header_timeout = 300ms;
    const auto tier = tier_of(settings);
    while (!put(*tier, image("a"), "text")) {} // a loaded machine may need more than one try
    server.signal(SIGSTOP);
    const auto start = Clock::now();
    EXPECT_TRUE(failed_with(tier->get(image("a"), {100}), ErrorCode::io_failed, "no answer within the time limit"));
    EXPECT_TRUE(failed_with(tier->get(image("a"), {256 << 20}), ErrorCode::io_failed, "no answer"))
        << "the first byte has the time limit of a header";
    EXPECT_TRUE(failed_with(tier->put(image("a"), as_bytes("x")), ErrorCode::io_failed, "no answer"));
    EXPECT_TRUE(failed_with(tier->list({}), ErrorCode::io_failed, "no answer"));
    EXPECT_LT(Clock::now() - start, 15s) << "payload_timeout is 30 s";
    settings.header_timeout = 60s;
    EXPECT_TRUE(failed_with(tier_of(settings)->get(image("a"), {.bytes = 100, .within = 100ms}), ErrorCode::io_failed));
    EXPECT_LT(Clock::now() - start, 30s) << "ReadLimit::within";
    server.signal(SIGCONT);
    EXPECT_FALSE(content_of(*tier_of(server.settings()), image("a")).starts_with("failed")) << "it goes on";
}

} // namespace
} // namespace warmgraph::test::redis_backend_test
