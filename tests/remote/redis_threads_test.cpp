// The Redis backend with calls at the same time.
#include "../store/store_fixture.hpp"
#include "redis_server.hpp"

namespace warmgraph::test::redis_threads_test {
namespace {

store::Name image(std::string_view text) { return store::ImageName{sha256(as_bytes(text))}; }
store::Name entry(std::string_view of) { return EntryKey{k_decode, sha256(as_bytes(of))}; }

std::string content_of(store::Tier& tier, const store::Name& name)
{
    const auto found = take(tier.get(name, {1 << 20}));
    return found && found->bytes ? std::string(as_text(*found->bytes)) : "none";
}

class RedisThreads : public StoreTest {};

TEST_F(RedisThreads, ShareClients)
{
    const RedisServer server;
    const std::unique_ptr<store::Tier> clients[]{take(remote::backend_of(server.settings())),
                                                 take(remote::backend_of(server.socket_settings()))};
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            store::Tier &one = *clients[thread % 2], &other = *clients[(thread + 1) % 2];
            for (int i = 0; i < 200; ++i) {
                const std::string mine = fmt::format("{} {}", thread, i), text(static_cast<std::size_t>(i) * 50, 'x');
                ASSERT_TRUE(succeeded(one.put(image(mine), as_bytes(text))));
                EXPECT_EQ(content_of(other, image(mine)), text);
                ASSERT_TRUE(succeeded(one.put(entry("all"), as_bytes(std::string(100, char('a' + thread))))));
                EXPECT_EQ(content_of(one, entry("all")).size(), 100U);
            }
        });
    threads.clear();
    EXPECT_EQ(take(clients[0]->list({.kind = store::ArtifactKind::images})).size(), 800U);
}

TEST_F(RedisThreads, ShareAServerThatEndsAndReturns)
{
    RedisServer server;
    const auto tier = take(remote::backend_of(server.settings()));
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&](const std::stop_token& stop) {
            for (int i = 0; !stop.stop_requested(); ++i) {
                const std::string text = std::to_string(i % 7);
                static_cast<void>(tier->put(image(text), as_bytes(text)));
                const auto found = tier->get(image(text), {100});
                if (!found) {
                    EXPECT_EQ(found.error().code, ErrorCode::io_failed) << found.error().message;
                } else if (*found) {
                    EXPECT_EQ(as_text(*(*found)->bytes), text) << "never the answer to another question";
                }
            }
        });
    for (int i = 0; i < 5; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        server.restart();
    }
    threads.clear();
    EXPECT_TRUE(succeeded(tier->put(image("last"), as_bytes("x"))));
}

} // namespace
} // namespace warmgraph::test::redis_threads_test
