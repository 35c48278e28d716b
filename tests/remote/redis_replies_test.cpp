// The Redis backend with servers that answer wrongly, slowly or not at all.
#include <atomic>

#include <poll.h>

#include "../store/store_fixture.hpp"
#include "redis_server.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::test::redis_replies_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A server on a thread: it waits for a request, sends a script, and then, if `closes`, ends the connection.
class ScriptedServer {
public:
    struct Script {
        std::string answer{};
        std::size_t piece = ~0ULL; ///< bytes that are sent at once
        std::chrono::milliseconds pause{0};
        bool closes = false;
    };

    explicit ScriptedServer(Script script)
        : m_script(std::move(script)),
          m_listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
          m_port(bind_to_free_port(m_listener))
    {
        ::listen(m_listener, 16);
        m_thread = std::jthread([this](const std::stop_token& stop) {
            while (!stop.stop_requested())
                if (is_readable(m_listener)) serve(::accept(m_listener, nullptr, nullptr), stop);
        });
    }
    ~ScriptedServer()
    {
        m_thread.request_stop();
        m_thread.join();
        ::close(m_listener);
    }
    [[nodiscard]] std::unique_ptr<store::Tier> tier(std::chrono::milliseconds limit = 20s) const
    {
        remote::Settings settings;
        settings.scheme = remote::Scheme::redis;
        settings.host = "127.0.0.1";
        settings.port = m_port;
        settings.label = "redis://scripted";
        settings.credentials.password = m_password;
        settings.connect_timeout = 20s;
        settings.header_timeout = settings.payload_timeout = limit;
        return take(remote::backend_of(settings));
    }
    void set_password(std::string password) { m_password = std::move(password); }
    [[nodiscard]] int connections() const { return m_connections; }

private:
    static bool is_readable(int socket)
    {
        pollfd one{.fd = socket, .events = POLLIN, .revents = 0};
        return ::poll(&one, 1, 20) > 0;
    }

    void serve(int socket, const std::stop_token& stop)
    {
        ++m_connections;
        char request[4096];
        while (!stop.stop_requested()) {
            if (!is_readable(socket)) continue;
            if (::recv(socket, request, sizeof request, 0) <= 0) break;
            for (std::string_view rest = m_script.answer; !rest.empty() && !stop.stop_requested();) {
                const std::string_view piece = rest.substr(0, m_script.piece);
                if (::send(socket, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
                rest.remove_prefix(piece.size());
                std::this_thread::sleep_for(m_script.pause);
            }
            if (m_script.closes) break;
        }
        ::close(socket);
    }

    Script m_script;
    int m_listener;
    std::uint16_t m_port;
    std::string m_password;
    std::atomic<int> m_connections = 0;
    std::jthread m_thread;
};

using Script = ScriptedServer::Script;

class RedisReplies : public StoreTest {
protected:
    static store::Name image() { return store::ImageName{sha256(as_bytes("a"))}; }
    static Result<std::optional<store::StampedBytes>> get(const ScriptedServer& server, std::uint64_t bytes = 100)
    {
        return server.tier()->get(image(), {bytes});
    }
};

/// The answer to a get(): the range, STRLEN, EXISTS.
std::string found(std::string_view range, std::int64_t size)
{
    return "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n" + std::string(range) + fmt::format(":{}\r\n:1\r\n", size);
}

TEST_F(RedisReplies, ARightAnswerIsTaken)
{
    for (const std::size_t piece : {~0ULL, 1ULL}) {
        const ScriptedServer server({.answer = found("$3\r\nabc\r\n", 3), .piece = piece});
        EXPECT_EQ(as_text(*take(get(server))->bytes), "abc") << piece;
    }
}

TEST_F(RedisReplies, WrongAnswersAreCorrupt)
{
    const std::string answers[]{
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        "220 mail.example.com ESMTP\r\n",
        found("$3\r\nabc\r\n", 3) + "+OK\r\n",             // more than was asked
        found("$3\r\nabc\r\n", 4),                         // a byte is missing
        found("$4\r\nabcd\r\n", 3),                        // one too many
        found("$3\r\nabc\r\n", -1),                        //
        found("$101\r\n", 101),                            // more than was wanted
        found("$9223372036854775807\r\n", 3),              //
        found(":3\r\n", 3),                                // another type
        found("$-1\r\n", 3),                               //
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*-1\r\n", //
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:3\r\n:1\r\n",
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n$3\r\nabc\r\n:3\r\n+OK\r\n",
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n",
        ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
        "+" + std::string(100'000, 'x'),
    };
    for (const std::string& answer : answers) {
        const ScriptedServer server({.answer = answer});
        EXPECT_TRUE(failed_with(get(server), ErrorCode::corrupt, "redis://scripted")) << answer.substr(0, 100);
    }
}

TEST_F(RedisReplies, WrongAnswersToOtherCallsAreCorrupt)
{
    for (const char* answer : {":1\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "*1\r\n:1\r\n", "$1\r\n", "*5000\r\n"}) {
        const ScriptedServer server({.answer = answer, .closes = true});
        const auto tier = server.tier();
        EXPECT_FALSE(tier->get_entries(k_decode, {100, false})) << answer;
        EXPECT_FALSE(tier->list({})) << answer;
        EXPECT_FALSE(tier->list({.kind = store::ArtifactKind::images})) << answer;
        EXPECT_FALSE(tier->put(image(), as_bytes("x"))) << answer;
        EXPECT_FALSE(tier->remove(image())) << answer;
    }
}

TEST_F(RedisReplies, TooManyHeadsAreCorrupt)
{
    std::string answer = "*514\r\n";
    const ScriptedServer many({.answer = answer});
    EXPECT_TRUE(failed_with(many.tier()->get_entries(k_decode, {100, false}), ErrorCode::corrupt, "514 elements"));
    answer = "*512\r\n";
    for (int i = 0; i < 512; ++i) answer += "$32776\r\n" + std::string(32'776, 'x') + "\r\n";
    const ScriptedServer large({.answer = answer});
    EXPECT_TRUE(failed_with(large.tier()->get_entries(k_decode, {100, false}), ErrorCode::corrupt, "in all"));
    const ScriptedServer odd({.answer = "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"});
    EXPECT_TRUE(failed_with(odd.tier()->get_entries(k_decode, {100, false}), ErrorCode::corrupt, "HGETALL"));
}

TEST_F(RedisReplies, NamesThatAreNoneAreLeftOut)
{
    const std::string hex(64, 'a'), name = "images/" + hex;
    std::string answer = "*2\r\n$1\r\n0\r\n*4\r\n";
    for (const std::string& text : {std::string("images/../x"), name, "entries/" + hex, std::string("\r\n")})
        answer += fmt::format("${}\r\n{}\r\n", text.size(), text);
    const ScriptedServer server({.answer = answer});
    EXPECT_THAT(take(server.tier()->list({.kind = store::ArtifactKind::images})),
                ElementsAre(*store::name_from_text(name)));
}

TEST_F(RedisReplies, AnEndlessListIsGivenUp)
{
    const ScriptedServer server({.answer = "*2\r\n$1\r\n5\r\n*0\r\n"});
    const auto start = Clock::now();
    EXPECT_TRUE(failed_with(server.tier(300ms)->list({}), ErrorCode::io_failed, "time limit"));
    EXPECT_LT(Clock::now() - start, 20s);
}

TEST_F(RedisReplies, AServerThatEndsInTheMiddleFails)
{
    const std::string whole = found("$3\r\nabc\r\n", 3);
    for (std::size_t cut = 0; cut < whole.size(); cut += 3) {
        const ScriptedServer server({.answer = whole.substr(0, cut), .closes = true});
        EXPECT_TRUE(failed_with(get(server), ErrorCode::io_failed, "closed")) << cut;
        EXPECT_EQ(server.connections(), 1) << "a new connection that fails is not tried again";
    }
}

TEST_F(RedisReplies, AnErrorBeforeTheEndIsTheReason)
{
    ScriptedServer server({.answer = "-ERR max number of clients reached\r\n", .closes = true});
    EXPECT_TRUE(failed_with(get(server), ErrorCode::io_failed, "max number of clients"));
    server.set_password("top-secret");
    EXPECT_TRUE(failed_with(get(server), ErrorCode::io_failed, "refuses"));
}

TEST_F(RedisReplies, ASilentServerIsGivenUp)
{
    const ScriptedServer server({});
    const auto start = Clock::now();
    EXPECT_TRUE(failed_with(server.tier(200ms)->get(image(), {100}), ErrorCode::io_failed, "time limit"));
    EXPECT_TRUE(failed_with(server.tier(200ms)->put(image(), Bytes(32 << 20)), ErrorCode::io_failed));
    EXPECT_LT(Clock::now() - start, 20s);
}

TEST_F(RedisReplies, ADrippingServerIsGivenUp)
{
    const ScriptedServer server(
        {.answer = found("$90\r\n" + std::string(90, 'x') + "\r\n", 90), .piece = 1, .pause = 100ms});
    const auto start = Clock::now();
    EXPECT_TRUE(failed_with(server.tier(500ms)->get(image(), {100}), ErrorCode::io_failed, "time limit"));
    EXPECT_TRUE(failed_with(server.tier()->get(image(), {.bytes = 100, .within = 500ms}), ErrorCode::io_failed));
    EXPECT_LT(Clock::now() - start, 12s) << "the whole answer takes 14 s";
}

TEST_F(RedisReplies, ALateSurplusIsNoAnswerToTheNextQuestion)
{
    const std::string answer = found("$3\r\nabc\r\n", 3);
    const ScriptedServer server({.answer = answer + found("$3\r\nxyz\r\n", 3), .piece = answer.size(), .pause = 50ms});
    const auto tier = server.tier();
    for (int i = 0; i < 3; ++i) {
        const auto got = tier->get(image(), {100});
        ASSERT_TRUE(succeeded(got));
        EXPECT_EQ(as_text(*(*got)->bytes), "abc");
        std::this_thread::sleep_for(300ms); // the surplus is there
    }
    EXPECT_EQ(server.connections(), 3);
}

TEST_F(RedisReplies, APasswordThatTheServerRepeatsIsNotShown)
{
    ScriptedServer server({.answer = "-ERR unknown command 'AUTH', with args beginning with: 'top-secret'\r\n"});
    server.set_password("top-secret");
    const auto result = get(server);
    ASSERT_TRUE(failed_with(result, ErrorCode::io_failed, "ERR"));
    EXPECT_EQ(result.error().message.find("top-secret"), std::string::npos) << result.error().message;
    ScriptedServer odd({.answer = "$10\r\ntop-secret\r\n"});
    odd.set_password("top-secret");
    EXPECT_EQ(message_of(get(odd)).find("top-secret"), std::string::npos);
    ScriptedServer rude({.answer = "top-secret\r\n"});
    rude.set_password("top-secret");
    EXPECT_EQ(message_of(get(rude)).find("top-secret"), std::string::npos);
}

} // namespace
} // namespace warmgraph::test::redis_replies_test
